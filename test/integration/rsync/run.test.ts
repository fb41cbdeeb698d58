// rsync as we run it, against a real sshd with keys that are restricted as the runbook says.
import { execFileSync } from 'node:child_process';
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { buildPullArgs, buildPushArgs } from '../../../src/lib/rsync/args.ts';
import { findRemoteShell, type RsyncEnd, type RsyncRun, runRsync } from '../../../src/lib/rsync/run.ts';
import { collectAfterAll } from '../../support/after-all.ts';
import { startByteProxy } from '../../support/byte-proxy.ts';
import { type FarSide, makeFarSide } from '../../support/far-side.ts';
import { freePort } from '../../support/ports.ts';
import { type Sshd, startSshd } from '../../support/sshd.ts';
import { makeTempDir } from '../../support/temp.ts';

const whenAllDone = collectAfterAll();
let sshd: Sshd;
beforeAll(async () => {
  sshd = await startSshd(whenAllDone);
});

type Near = {
  readonly far: FarSide;
  readonly dir: string;
  pull(from?: string, over?: Partial<RsyncRun>): Promise<RsyncEnd>;
  push(names: readonly string[], to?: string, makesPath?: boolean): Promise<RsyncEnd>;
  file(name: string): string;
};

function makeNear(): Near {
  const root = makeTempDir();
  const far = makeFarSide(sshd, root);
  const dir = join(root, 'near');
  mkdirSync(dir);
  const paths = { configFile: join(root, 'etc/reeve.yaml') };
  const { signal } = new AbortController();
  return {
    ...{ far, dir, file: (name) => join(root, name) },
    pull: async (from = far.pull, over = {}) => {
      const remoteShell = (await findRemoteShell({ paths }, from, 'pull')) ?? 'none';
      const args = buildPullArgs({ remoteShell, from, to: dir, maxFileBytes: 65_536 });
      return await runRsync({ signal }, { what: `pull from ${from}`, args, timeoutMs: 30_000, ...over });
    },
    push: async (names, to = far.push, makesPath = false) => {
      const remoteShell = (await findRemoteShell({ paths }, to, 'push')) ?? 'none';
      const args = buildPushArgs({ remoteShell, from: dir, to, makesPath });
      const input = names.map((name) => `${name}\0`).join('');
      return await runRsync({ signal }, { what: `push to ${to}`, args, input, timeoutMs: 30_000 });
    },
  };
}

const complete = { verdict: 'complete' };
/** rsync says 12 where it hears of the closed pipe before ssh has ended. */
const endOfSsh = expect.stringMatching(/^rsync-(255|12)$/);

describe('rsync over a restricted key', () => {
  it('pulls what is there, and it alone (D6)', async () => {
    const near = makeNear();
    writeFileSync(join(near.far.deploy, 'a.json'), '{"a":1}', { mode: 0o664 });
    const lines: string[] = [];
    expect(await near.pull(undefined, { onLine: (line) => lines.push(line) > 0 })).toEqual(complete);
    expect(lines).toContain('|>f+++++++++|a.json');
    expect(readFileSync(join(near.dir, 'a.json'), 'utf8')).toBe('{"a":1}');
    expect(statSync(join(near.dir, 'a.json')).mode & 0o777).toBe(0o600);
    rmSync(join(near.far.deploy, 'a.json'));
    expect(await near.pull()).toEqual(complete);
    expect(readdirSync(near.dir)).toEqual(['a.json']);
  });

  it.each<[string, string, string]>([
    ['says something else, with the same size and time', '{"a":9}', '2026-11-30T12:00:00Z'],
    ['was cut, at the same time', '{"a"', '2026-11-30T12:00:00Z'],
    ['was cut, and has a time in the future', '{"a"', '2099-01-01T00:00:00Z'],
    ['is the same size, with a time in the future', '{"a":9}', '2099-01-01T00:00:00Z'],
    ['is longer', '{"a":1}}', '2026-11-30T12:00:00Z'],
  ])('mends a file that %s (O64)', async (_, content, date) => {
    const near = makeNear();
    const [far, here] = [join(near.far.deploy, 'a.json'), join(near.dir, 'a.json')];
    writeFileSync(far, '{"a":1}');
    utimesSync(far, new Date('2026-11-30T12:00:00Z'), new Date('2026-11-30T12:00:00Z'));
    writeFileSync(here, content);
    utimesSync(here, new Date(date), new Date(date));
    expect(await near.pull()).toEqual(complete);
    expect(readFileSync(here, 'utf8')).toBe('{"a":1}');
    expect(statSync(here).mtime).toEqual(statSync(far).mtime);
  });

  it('brings a file that has a time in the future at the source, and its next content (O64)', async () => {
    const near = makeNear();
    const [far, here] = [join(near.far.deploy, 'a.json'), join(near.dir, 'a.json')];
    for (const content of ['{"a":1}', '{"a":2}']) {
      writeFileSync(far, content);
      utimesSync(far, new Date('2099-01-01T00:00:00Z'), new Date('2099-01-01T00:00:00Z'));
      expect(await near.pull()).toEqual(complete);
      expect(readFileSync(here, 'utf8')).toBe(content);
    }
  });

  it('pushes the files that are named, for others to read (D10)', async () => {
    const near = makeNear();
    for (const name of ['one.json', 'two.json']) writeFileSync(join(near.dir, name), name, { mode: 0o600 });
    expect(await near.push(['one.json'])).toEqual(complete);
    expect(readdirSync(near.far.events)).toEqual(['one.json']);
    expect(statSync(join(near.far.events, 'one.json')).mode & 0o777).toBe(0o644);
    expect(await near.push(['one.json', 'two.json'])).toEqual(complete);
    expect(readdirSync(near.far.events).sort()).toEqual(['one.json', 'two.json']);
  });

  it('makes a directory a day where it is to, and none where a place is mistyped', async () => {
    const near = makeNear();
    writeFileSync(join(near.dir, 'one.json'), '1');
    expect(await near.push(['one.json'], `${near.far.push}2026-11-30/web-1`)).toMatchObject({
      verdict: 'failed',
      error: { code: 'rsync-11' },
    });
    expect(readdirSync(near.far.events)).toEqual([]);
    expect(await near.push(['one.json'], `${near.far.push}2026-11-30/web-1`, true)).toEqual(complete);
    expect(readdirSync(join(near.far.events, '2026-11-30/web-1'))).toEqual(['one.json']);
  });

  it('says of a directory that is missing there what is missing, and not where rrsync noticed', async () => {
    const near = makeNear();
    writeFileSync(join(near.dir, 'one.json'), '1');
    rmSync(near.far.events, { recursive: true });
    const end = await near.push(['one.json']);
    expect(end).toMatchObject({ error: { exitCode: 69, code: 'rsync-12' } });
    expect(end.error?.message).toContain(near.far.events);
    expect(end.error?.message).toMatch(/No such file or directory/);
    expect(end.error?.message).not.toMatch(/Traceback|, line \d+/);
  });

  it.each([
    ['another directory', '/etc/', 'pull'],
    ['the directory above', '..', 'pull'],
    ['a push by the key for pulls', '', 'swapped'],
  ])('is refused %s', async (_, path, how) => {
    const near = makeNear();
    writeFileSync(join(near.dir, 'one.json'), '1');
    if (how === 'swapped') writeFileSync(near.file('etc/ssh/push'), readFileSync(near.file('etc/ssh/pull')));
    const end =
      how === 'pull' ? await near.pull(`control:${path}`) : await near.push(['one.json'], near.far.pull);
    expect(end).toMatchObject({ verdict: 'unreachable', error: { exitCode: 69, code: 'rsync-12' } });
    expect(end.error?.message).toMatch(/rrsync error/);
    expect(readdirSync(near.dir)).toEqual(['one.json']);
    expect(readdirSync(near.far.deploy)).toEqual([]);
  });

  it('is given nothing that leads elsewhere: a link that a node pushes by its key (O68)', async () => {
    const near = makeNear();
    writeFileSync(near.file('secret'), 'secret');
    symlinkSync(near.file('secret'), join(near.dir, 'one.json'));
    const shell =
      (await findRemoteShell(
        { paths: { configFile: near.file('etc/reeve.yaml') } },
        near.far.push,
        'push',
      )) ?? '';
    execFileSync('rsync', ['--links', '--dirs', '-e', shell, `${near.dir}/`, near.far.push]);
    const arrived = join(near.far.events, 'one.json');
    expect(lstatSync(arrived).isSymbolicLink()).toBe(true);
    expect(() => readFileSync(arrived)).toThrow(/ENOENT/);
    expect(readlinkSync(arrived)).toMatch(/^\/rsyncd-munged\//);
  });

  it('lets nobody in by a host key that is not the known one (255)', async () => {
    const near = makeNear();
    const other = await startSshd();
    writeFileSync(near.file('etc/ssh/known_hosts'), other.knownHosts(sshd.port));
    const end = await near.pull();
    expect(end).toMatchObject({ verdict: 'unreachable', error: { exitCode: 69, code: endOfSsh } });
    expect(end.error?.message).toMatch(/Host key verification failed/);
  });

  it('tells a key that is not let in, and a machine that nobody answers on (255)', async () => {
    const near = makeNear();
    rmSync(near.file('etc/ssh/pull'));
    const refused = await near.pull();
    expect(refused).toMatchObject({ verdict: 'unreachable', error: { code: endOfSsh } });
    expect(refused.error?.message).toMatch(/Permission denied/);
    near.far.leadTo(await freePort());
    const absent = await near.pull();
    expect(absent).toMatchObject({ verdict: 'unreachable', error: { code: endOfSsh } });
    expect(absent.error?.message).toMatch(/Connection refused/);
  });

  it('tells a directory that is not there (23)', async () => {
    const near = makeNear();
    expect(await near.pull(near.file('none/'))).toMatchObject({
      verdict: 'partial',
      error: { exitCode: 1, code: 'rsync-23' },
    });
  });

  it('ends with a link that stands still, and leaves nothing half (O64)', async () => {
    const near = makeNear();
    const proxy = await startByteProxy(sshd.port);
    near.far.leadTo(proxy.port);
    for (let count = 0; count < 50; count += 1) {
      writeFileSync(join(near.far.deploy, `a-${count}.json`), `${count}`.repeat(10_000));
    }
    expect(await near.pull()).toEqual(complete);
    rmSync(near.dir, { recursive: true });
    mkdirSync(near.dir);
    proxy.cutAfter(3_000, () => {});
    const startedAtMs = performance.now();
    const end = await near.pull(undefined, { timeoutMs: 3_000 });
    // rsync itself would not notice before half a minute.
    expect(performance.now() - startedAtMs).toBeLessThan(15_000);
    expect(end).toMatchObject({ verdict: 'unreachable', error: { exitCode: 69, code: 'rsync-timeout' } });
    proxy.heal();
    expect(await near.pull()).toEqual(complete);
    expect(readdirSync(near.dir).filter((name) => /^a-\d+\.json$/.test(name))).toHaveLength(50);
  });
});

describe('what is too much', () => {
  it('is no more than was asked for: larger files stay where they are (O68)', async () => {
    const near = makeNear();
    writeFileSync(join(near.far.deploy, 'big.json'), Buffer.alloc(50 * 1024 * 1024));
    const lines: string[] = [];
    expect(await near.pull(undefined, { onLine: (line) => lines.push(line) > 0 })).toEqual(complete);
    expect(lines).toContain('big.json is over max-size');
    expect(readdirSync(near.dir)).toEqual([]);
  });

  it('cannot be written, whatever the far side has announced (O68)', async () => {
    const near = makeNear();
    writeFileSync(join(near.far.deploy, 'a.json'), Buffer.alloc(60_000, 'a'));
    const end = await near.pull(undefined, { maxFileBytes: 8_192 });
    expect(end.verdict).not.toBe('complete');
    expect(readdirSync(near.dir).filter((name) => !name.startsWith('.'))).toEqual([]);
  });

  it('ends where whoever reads has had enough', async () => {
    const near = makeNear();
    for (let count = 0; count < 100; count += 1) writeFileSync(join(near.far.deploy, `a-${count}.json`), '');
    let seen = 0;
    const onLine = (): boolean => {
      seen += 1;
      return seen < 10;
    };
    expect(await near.pull(undefined, { onLine })).toEqual({ verdict: 'stopped' });
    expect(seen).toBe(10);
  });

  it('is told as the machine’s fault where there is no rsync', async () => {
    const near = makeNear();
    const run = { what: 'pull', args: ['--version'], timeoutMs: 5_000 };
    const path = process.env['PATH'];
    process.env['PATH'] = near.file('bin');
    try {
      await expect(runRsync({ signal: new AbortController().signal }, run)).rejects.toMatchObject({
        exitCode: 78,
      });
    } finally {
      process.env['PATH'] = path;
    }
  });
});
