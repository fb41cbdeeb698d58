// Commands as another user: what they are given never counts before they are that user, and what they miss is told as to root.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type CommandEnd, runCommand } from '../../../src/lib/runner/run.ts';
import type { CommandSpec } from '../../../src/lib/runner/start.ts';
import { mountDead } from '../../support/dead-disk.ts';
import { makeTempDir } from '../../support/temp.ts';

const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };
const nobody = { uid: 65_534, gid: 65_534 };

async function runAs(
  argv: CommandSpec['argv'] | string,
  more: Partial<CommandSpec> = {},
): Promise<CommandEnd & { text: string }> {
  const spec = {
    argv: typeof argv === 'string' ? { shell: argv } : argv,
    dir: '/',
    env,
    user: nobody,
    ...more,
  };
  const end = await runCommand(spec, {
    ...{ deadlineMs: 30_000, killGraceMs: 2_000, maxOutputBytes: 65_536 },
    ...{ scratchDir: makeTempDir(), signal: new AbortController().signal },
  });
  return { ...end, text: Buffer.from(end.output.bytes).toString() };
}

/** Open to everybody. */
function openDir(): string {
  const dir = makeTempDir();
  chmodSync(dir, 0o755);
  return dir;
}

function program(dir: string, name: string, text: string, mode = 0o755): string {
  const path = join(dir, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

describe('a command of another user', () => {
  it('is searched for and run in its own PATH, and what changes the user is not (A52)', async () => {
    const dir = openDir();
    for (const name of ['setpriv', 'node', 'env', 'sh']) {
      program(dir, name, `#!/bin/sh\necho ${name} $(/usr/bin/id -u)\n`);
    }
    program(dir, 'mine', '#!/bin/sh\necho mine $(/usr/bin/id -u)\n');
    const given = { env: { PATH: dir } };
    expect(await runAs(['mine'], given)).toMatchObject({ kind: 'exited', code: 0, text: 'mine 65534\n' });
    expect(await runAs('/usr/bin/id -u', given)).toMatchObject({ code: 0, text: '65534\n' });
    expect(await runAs('/usr/bin/id -u', { env: { PATH: '/nowhere' } })).toMatchObject({ text: '65534\n' });
  });

  it('has a loader that obeys it only once it is that user (A52)', async () => {
    const dir = openDir();
    const source = join(dir, 'loaded.c');
    writeFileSync(
      source,
      '#include <stdio.h>\n#include <unistd.h>\n__attribute__((constructor)) static void f(void) { dprintf(1, "loaded by %d\\n", geteuid()); }\n',
    );
    const library = join(dir, 'loaded.so');
    execFileSync('cc', ['-shared', '-fPIC', '-o', library, source]);
    const end = await runAs(['true'], { env: { ...env, LD_PRELOAD: library } });
    expect(end).toMatchObject({ kind: 'exited', code: 0, text: 'loaded by 65534\n' });
  });

  it('gets exactly its environment, on no command line, and nothing of Node.js', async () => {
    const given = { ...env, 'odd.name': 'a "b"\n$c', UID: '7', PPID: '1', NODE_OPTIONS: '--bad', EMPTY: '' };
    const end = await runAs(['env', '-0'], { env: given });
    expect(
      Object.fromEntries(
        end.text
          .split('\0')
          .slice(0, -1)
          .map((one) => one.split(/=(.*)/s).slice(0, 2)),
      ),
    ).toEqual(given);
    const status = await runAs(['grep', '-E', 'SigIgn|SigBlk', '/proc/self/status']);
    expect(status.text).toMatch(/^SigBlk:\t0{16}\nSigIgn:\t0{16}\n$/);
    const open = await runAs('[ -e /proc/$$/fd/3 ] || echo none');
    expect(open.text).toBe('none\n');
  });

  it('has the groups of its user', async () => {
    const groups = execFileSync('id', ['-G', 'www-data'], { encoding: 'utf8' });
    expect(await runAs(['id', '-G'], { user: { uid: 33, gid: 33 } })).toMatchObject({ text: groups });
  });

  it('can open its stderr by its name', async () => {
    const end = await runAs('echo one > /dev/stderr; echo two | tee /dev/stderr > /dev/null');
    expect(end).toMatchObject({ kind: 'exited', code: 0, text: 'one\ntwo\n' });
  });

  it('is told why it does not start, in the words of root', async () => {
    const dir = openDir();
    const closed = join(dir, 'closed');
    mkdirSync(closed, { mode: 0o700 });
    const told = async (argv: CommandSpec['argv'], more: Partial<CommandSpec> = {}) => {
      const end = await runAs(argv, more);
      return end.kind === 'not-started' ? end.message : end;
    };
    expect(await told(['true'], { dir: closed })).toBe(`cannot enter "${closed}": permission denied`);
    expect(await told(['true'], { dir: '/nowhere' })).toBe('cannot enter "/nowhere": no such directory');
    expect(await told(['true'], { dir: '/etc/passwd' })).toBe(
      'cannot enter "/etc/passwd": it, or what stands before it, is no directory',
    );
    expect(await told(['true', 'a\0b'])).toContain('cannot run "true": ');
    expect(await told(['nope'])).toBe('cannot run "nope": no such program, or nothing to run it with');
    expect(await told(['/etc/passwd'])).toBe('cannot run "/etc/passwd": permission denied');
    const lost = program(dir, 'lost', '#!/nowhere/sh\n');
    expect(await told([lost])).toBe(`cannot run "${lost}": no such program, or nothing to run it with`);
    const own = program(dir, 'own', '#!/bin/sh\n', 0o700);
    expect(await told([own])).toBe(`cannot run "${own}": permission denied`);
    expect(await told(['true', 'x'.repeat(300_000)])).toBe(
      'cannot run "true": its arguments and its environment are too long',
    );
  });

  it('may be a script that names no shell', async () => {
    const script = program(openDir(), 'script', 'echo "ran $1"\n');
    expect(await runAs([script, 'a b'])).toMatchObject({ kind: 'exited', code: 0, text: 'ran a b\n' });
  });

  it('ends with its own status and signal', async () => {
    expect(await runAs('exit 126')).toMatchObject({ kind: 'exited', code: 126 });
    expect(await runAs('kill -KILL $$')).toMatchObject({ kind: 'signalled', signal: 'SIGKILL' });
  });
});

describe('a directory that does not answer', () => {
  it.each<[string, Pick<CommandSpec, 'user'>]>([
    ['root', {}],
    ['another user', { user: nobody }],
  ])('holds a command of %s no longer than its deadline, and than its end (A49, A50)', async (_, user) => {
    const dir = join(openDir(), 'dead');
    mountDead(dir);
    const startedAtMs = performance.now();
    const spec = { ...user, argv: ['true'] as const, dir, env };
    const options = { killGraceMs: 30_000, maxOutputBytes: 1_024, scratchDir: makeTempDir() };
    const never = new AbortController().signal;
    expect(await runCommand(spec, { ...options, deadlineMs: 300, signal: never })).toMatchObject({
      kind: 'deadline',
    });
    const signal = AbortSignal.timeout(300);
    expect(await runCommand(spec, { ...options, deadlineMs: 60_000, signal })).toMatchObject({
      kind: 'cancelled',
    });
    expect(performance.now() - startedAtMs).toBeLessThan(8_000);
  });
});
