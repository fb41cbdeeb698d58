// How rsync-pull takes each end of rsync, links that break and disks that are full; real ones where they can be had.
import { chmodSync, cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseAction } from '../../../src/lib/deploy-runner/action.ts';
import { markerKey } from '../../../src/lib/deploy-runner/key.ts';
import { collectAfterAll } from '../../support/after-all.ts';
import { until } from '../../support/balanced.ts';
import { startByteProxy } from '../../support/byte-proxy.ts';
import { fillDisk, mountSmall } from '../../support/full-disk.ts';
import { makePullingNode, type PullEnd, type PullingNode, readTree } from '../../support/pulling-node.ts';
import { type Sshd, startSshd } from '../../support/sshd.ts';

const whenAllDone = collectAfterAll();
let sshd: Sshd;
beforeAll(async () => {
  sshd = await startSshd(whenAllDone);
});

/** Takes everything there is, says so, and ends with the status. */
function fakeRsync(
  node: PullingNode,
  status: number,
  complaint = 'rsync: a complaint',
): Record<string, string> {
  const program = node.write(
    'bin/rsync',
    [
      '#!/bin/sh',
      'for last; do :; done',
      `case $last in */staging/) cd ${node.far.deploy} && for name in *.json; do`,
      'cp "$name" "$last" 2>/dev/null && echo "|>f+++++++++|$name"; done;; esac',
      `echo "${complaint}" >&2`,
      `echo "rsync error: as asked for (code ${status}) at fake.c(1)" >&2`,
      `exit ${status}`,
    ].join('\n'),
  );
  chmodSync(program, 0o755);
  return { PATH: `${join(node.root, 'bin')}:${process.env['PATH']}` };
}

describe('the ends of rsync (O65, R39)', () => {
  it.each([
    [24, 0],
    [23, 1],
    [11, 1],
    [1, 1],
    [22, 1],
    [12, 69],
    [20, 69],
    [30, 69],
    [35, 69],
    [255, 69],
  ])('take what has arrived with %i, forget nothing, and exit with %i', async (status, exitCode) => {
    const node = makePullingNode(sshd);
    node.approve('redeploy-web-1-blog');
    await node.pull();
    rmSync(join(node.far.deploy, 'redeploy-web-1-blog.json'));
    node.approve('redeploy-web-1-shop');
    const end = await node.pull(fakeRsync(node, status));
    expect(end.status).toBe(exitCode);
    expect(node.names('inbox')).toEqual(['redeploy-web-1-blog.json', 'redeploy-web-1-shop.json']);
    expect(node.names('staging')).toEqual(['redeploy-web-1-blog.json', 'redeploy-web-1-shop.json']);
    if (exitCode === 0) expect(end.stderr).toContain('went while they were pulled');
    else expect(describePull(end)).toMatch(`(${status}): rsync: a complaint`);
  });

  it.each([23, 24, 12, 20, 30, 35, 255])('keep every result with %i', async (status) => {
    const node = makePullingNode(sshd);
    const name = node.result('redeploy-web-1-blog');
    expect((await node.pull(fakeRsync(node, status))).status).not.toBe(0);
    expect(node.names('outbox')).toEqual([name]);
  });

  it('are not taken for a machine without rsync by what the far side says (127)', async () => {
    const node = makePullingNode(sshd);
    const end = await node.pull(fakeRsync(node, 127, 'prlimit: failed to execute rsync'));
    expect(end.status).toBe(1);
    expect(describePull(end)).toMatch('there is no such command (127): prlimit: failed to execute rsync');
  });

  it('are told as the machine’s fault where there is no rsync (78)', async () => {
    const node = makePullingNode(sshd);
    mkdirSync(join(node.root, 'only'));
    cpSync('/usr/bin/prlimit', join(node.root, 'only/prlimit'));
    expect((await node.pull({ PATH: join(node.root, 'only') })).status).toBe(78);
  });
});

describe('a link', () => {
  it('that is down costs no result and no action (D43)', async () => {
    const node = makePullingNode(sshd);
    const own = await startSshd();
    node.far.leadTo(own.port);
    own.cut();
    const name = node.result('redeploy-web-1-blog');
    const end = await node.pull();
    expect(end.status).toBe(69);
    expect(describePull(end)).toMatch(/Connection refused.*Connection refused/);
    expect(node.names('outbox')).toEqual([name]);
    node.far.leadTo(sshd.port);
    expect(await node.pull()).toMatchObject({ status: 0, json: { sent: [name] } });
  });

  it('that breaks in the middle leaves nothing half in the inbox, and the next pull brings the rest (O64)', async () => {
    const node = makePullingNode(sshd);
    const text = node.approve('redeploy-web-1-blog', { details: { reason: 'r'.repeat(40_000) } });
    for (const wanted of [2_000, 3_000, 4_000]) {
      const proxy = await startByteProxy(sshd.port);
      node.far.leadTo(proxy.port);
      proxy.cutAfter(wanted, () => proxy.cut());
      const end = await node.pull();
      expect([0, 69]).toContain(end.status);
      for (const whole of Object.values(readTree(node.path('staging', ''), isVisible)))
        expect(whole).toBe(text);
    }
    node.far.leadTo(sshd.port);
    expect((await node.pull()).status).toBe(0);
    expect(readTree(node.path('inbox', ''))).toEqual({ 'redeploy-web-1-blog.json': text });
    expect(readdirSync(node.path('staging', ''))).toEqual(['redeploy-web-1-blog.json']);
  });

  it('that breaks under a push keeps what has not arrived, and sends it once', async () => {
    const node = makePullingNode(sshd);
    const names = Array.from({ length: 20 }, (_, index) => node.result('redeploy-web-1-blog', 1000 + index));
    for (const wanted of [4_500, 5_500, 6_500, 7_500]) {
      const proxy = await startByteProxy(sshd.port);
      node.far.leadTo(proxy.port);
      proxy.cutAfter(wanted, () => proxy.cut());
      await node.pull();
      const arrived = Object.keys(readTree(node.far.events, isVisible));
      expect([...new Set([...node.names('outbox'), ...arrived])].sort()).toEqual(names);
    }
    node.far.leadTo(sshd.port);
    expect((await node.pull()).status).toBe(0);
    expect(Object.keys(readTree(node.far.events, isVisible))).toEqual(names);
    expect(node.names('outbox')).toEqual([]);
  });
});

describe('two at once', () => {
  it('are one and a busy one (D37)', async () => {
    const node = makePullingNode(sshd);
    node.approve('redeploy-web-1-blog');
    const env = holdRsync(node);
    const pulls = [node.pull(env), node.pull(env), node.pull(env)];
    let over = 0;
    for (const pull of pulls) {
      pull.then(
        () => {
          over += 1;
        },
        () => {},
      );
    }
    await until(() => over === 2, 60_000);
    node.write('go', '');
    const ends = await Promise.all(pulls);
    expect(ends.map(({ status }) => status).sort()).toEqual([0, 75, 75]);
    expect(ends.flatMap(({ json }) => json['handedOver'] ?? [])).toEqual(['redeploy-web-1-blog.json']);
  });

  it('are one after the other where the second waits', async () => {
    const node = makePullingNode(sshd);
    node.approve('redeploy-web-1-blog');
    const words = ['rsync-pull', '--wait', '30'];
    const ends = await Promise.all([node.reeve(...words), node.reeve(...words)]);
    expect(ends.map(({ status }) => status)).toEqual([0, 0]);
    expect(node.names('inbox')).toEqual(['redeploy-web-1-blog.json']);
  });

  it('leave the lock free for the next one, whatever rsync has left running (R40)', async () => {
    const node = makePullingNode(sshd);
    node.write('bin/rsync', '#!/bin/sh\nsetsid sleep 20 >/dev/null 2>&1 &\nexit 0\n');
    chmodSync(join(node.root, 'bin/rsync'), 0o755);
    expect((await node.pull({ PATH: `${join(node.root, 'bin')}:${process.env['PATH']}` })).status).toBe(0);
    expect((await node.pull()).status).toBe(0);
  });
});

describe('a full disk', () => {
  it('keeps no result from leaving, and the next pull brings what had no room', async () => {
    const node = makePullingNode(sshd);
    await node.pull();
    rmSync(node.stateDir, { recursive: true });
    mountSmall(node.stateDir, 'size=2m');
    await node.pull();
    const name = node.result('redeploy-web-1-shop');
    const text = node.approve('redeploy-web-1-blog');
    const free = fillDisk(node.stateDir);
    expect((await node.pull()).status).toBe(1);
    expect(node.names('inbox')).toEqual([]);
    expect(Object.keys(readTree(node.far.events, isVisible))).toEqual([name]);
    free();
    expect((await node.pull()).status).toBe(0);
    expect(readTree(node.path('inbox', ''))).toEqual({ 'redeploy-web-1-blog.json': text });
  });
});

describe('whatever keeps a pull from its work', () => {
  it.each<[string, (node: PullingNode) => void]>([
    ['a mirror that cannot be made', (node) => void node.write('state/actions/staging', 'no directory')],
    ['an inbox that is none', (node) => void node.write('state/actions/inbox', 'no directory')],
    [
      'a history that is none',
      (node) => mkdirSync(join(node.stateDir, 'history.ndjson'), { recursive: true }),
    ],
    ['what was told is no file', (node) => mkdirSync(node.path('strays.json', ''), { recursive: true })],
  ])('keeps no result from leaving: %s (D41)', async (_, spoil) => {
    const node = makePullingNode(sshd);
    node.approve('redeploy-web-1-blog');
    writeFileSync(join(node.far.deploy, 'README'), 'x');
    spoil(node);
    const name = node.result('redeploy-web-1-shop');
    const end = await node.pull();
    expect([1, 78]).toContain(end.status);
    expect(describePull(end)).toMatch(/^cannot /);
    expect(Object.keys(readTree(node.far.events))).toEqual([name]);
    expect(node.names('outbox')).toEqual([]);
  });

  it('keeps no result from leaving: a full disk, where a stray is to be told (D41)', async () => {
    const node = makePullingNode(sshd);
    mountSmall(node.stateDir, 'size=2m');
    await node.pull();
    const name = node.result('redeploy-web-1-shop');
    writeFileSync(join(node.far.deploy, 'README'), '');
    fillDisk(node.stateDir);
    const end = await node.pull();
    expect([end.status, describePull(end)]).toEqual([1, expect.stringMatching(/^cannot /)]);
    expect(Object.keys(readTree(node.far.events))).toEqual([name]);
    expect(node.names('outbox')).toEqual([]);
  });

  it('keeps no other action from the inbox: a marker that is no file (D41)', async () => {
    const node = makePullingNode(sshd);
    const bytes = Buffer.from(node.approve('redeploy-web-1-blog'));
    mkdirSync(node.path('processed-deploy-actions', `${markerKey(parseAction(bytes), bytes)}.json`), {
      recursive: true,
    });
    node.approve('redeploy-web-1-shop');
    const name = node.result('redeploy-web-1-wiki');
    await node.pull();
    expect(node.names('inbox')).toEqual(['redeploy-web-1-shop.json']);
    expect(Object.keys(readTree(node.far.events))).toContain(name);
  });
});

/** Nothing is pulled before there is a file `go`. */
function holdRsync(node: PullingNode): Record<string, string> {
  const wait = `until [ -e '${join(node.root, 'go')}' ]; do sleep 0.05; done`;
  chmodSync(node.write('bin/rsync', `#!/bin/sh\n${wait}\nexec /usr/bin/rsync "$@"\n`), 0o755);
  return { PATH: `${join(node.root, 'bin')}:${process.env['PATH']}` };
}

function describePull({ json }: PullEnd): string {
  return (json['error'] as { message: string }).message;
}

function isVisible(name: string): boolean {
  return !name.startsWith('.');
}
