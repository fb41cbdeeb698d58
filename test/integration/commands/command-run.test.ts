// `reeve command run` by itself: what it does to its machine, to a full disk, and to a command that does not end.
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, inject, it } from 'vitest';
import { lookAtCommand } from '../../../src/lib/commands/look.ts';
import { runCommandById } from '../../../src/lib/commands/run.ts';
import { until } from '../../support/balanced.ts';
import { contextOf } from '../../support/commands-context.ts';
import { type CommandsNode, makeCommandsNode, nodeBoot } from '../../support/commands-node.ts';
import { isAskingDead, mountDead } from '../../support/dead-disk.ts';
import { fillDisk, mountSmall } from '../../support/full-disk.ts';
import { startProcess } from '../../support/programs.ts';
import { tellFigure } from '../../support/system.ts';

function accept(node: CommandsNode, text: string, dir = '/'): void {
  const request = { jobId: 'a', dir, env: [], mode: 'shell', shell: text };
  const acceptedAt = new Date().toISOString();
  node.writeRecord('a', {
    jobId: 'a',
    generation: 'g',
    acceptedAt,
    bootId: nodeBoot,
    state: { kind: 'accepted', request },
  });
}

const stateOf = (node: CommandsNode): Record<string, unknown> =>
  node.record('a')['state'] as Record<string, unknown>;

describe('reeve command run', () => {
  it('ends a command that takes too long, with all that it has started (A50)', async () => {
    const node = makeCommandsNode();
    const alive = join(node.root, 'alive');
    accept(node, `echo begun; (trap '' TERM; while :; do date > ${alive}; sleep 0.02; done) & wait`);
    const ctx = await contextOf(node);
    const startedAtMs = performance.now();
    await runCommandById(ctx, 'a', { waitMs: 0, deadlineMs: 3_000 });
    // Five more seconds for what does not heed SIGTERM.
    expect(performance.now() - startedAtMs).toBeLessThan(25_000);
    expect(await lookAtCommand(ctx, 'a')).toEqual({
      ...{ status: 'failed', exit_code: -1, output: 'begun\n' },
      error: 'context deadline exceeded',
    });
    writeFileSync(alive, 'last');
    await sleep(200);
    expect(readFileSync(alive, 'utf8')).toBe('last');
  });

  it('is interrupted, and no failure to start, where it is told to stop before the start', async () => {
    const node = makeCommandsNode({ user: 'nobody' });
    accept(node, 'echo ran');
    // Asks for the user, and is not answered.
    const asked = join(node.root, 'asked');
    writeFileSync(join(node.root, 'getent'), `#!/bin/sh\ntouch ${asked}\nexec sleep 60\n`);
    chmodSync(join(node.root, 'getent'), 0o755);
    const env = { ...node.env, PATH: `${node.root}:${process.env['PATH']}` };
    const running = startProcess(inject('reeveBin'), ['command', 'run', '--', 'a'], env);
    await until(() => existsSync(asked));
    process.kill(running.pid, 'SIGTERM');
    await running.ended;
    expect(stateOf(node)).toMatchObject({
      ...{ kind: 'failed', exitCode: -1, error: 'interrupted: its unit was stopped' },
    });
  });

  it.each([
    ['4294967295', '100'],
    ['100', '4294967295'],
  ])('does not stay root for a user whose numbers say so: %s and %s', async (uid, gid) => {
    const node = makeCommandsNode({ user: 'other' });
    accept(node, 'id -u');
    writeFileSync(join(node.root, 'getent'), `#!/bin/sh\necho other:x:${uid}:${gid}::/:/bin/sh\n`);
    chmodSync(join(node.root, 'getent'), 0o755);
    const env = { ...node.env, PATH: `${node.root}:${process.env['PATH']}` };
    expect((await startProcess(inject('reeveBin'), ['command', 'run', '--', 'a'], env).ended).status).toBe(0);
    expect(stateOf(node)).toMatchObject({
      ...{ kind: 'failed', error: 'cannot run anything as "other": nobody can have its numbers' },
    });
  });

  it('gives a command nothing of its own environment', async () => {
    const node = makeCommandsNode();
    accept(node, 'env | sort');
    const env = { ...node.env, AWS_SECRET_ACCESS_KEY: 'hunter2', INVOCATION_ID: 'x', NOTIFY_SOCKET: '/x' };
    expect((await startProcess(inject('reeveBin'), ['command', 'run', '--', 'a'], env).ended).status).toBe(0);
    const names = readFileSync(join(node.stateDir, 'commands/a.output'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split('=')[0]);
    const allowed = [
      'HOME',
      'LANG',
      'LC_ALL',
      'LOGNAME',
      'PATH',
      'PWD',
      'SHLVL',
      'TZ',
      'TMPDIR',
      'USER',
      'SSL_CERT_FILE',
      '_',
      'OLDPWD',
    ];
    expect(names.filter((name) => !allowed.includes(name ?? ''))).toEqual([]);
    expect(names).toEqual(expect.arrayContaining(['HOME', 'LOGNAME', 'PATH', 'USER']));
  });

  it('holds no more memory for a gigabyte of output than for none (A54)', async () => {
    const node = makeCommandsNode();
    accept(node, 'head -c 1073741824 /dev/zero | tr "\\0" x; echo end');
    const process = startProcess(inject('reeveBin'), ['command', 'run', '--', 'a'], node.env);
    let mostKb = 0;
    let isOver = false;
    void process.ended.then(() => {
      isOver = true;
    });
    while (!isOver) {
      const text = existsSync(`/proc/${process.pid}/status`)
        ? readFileSync(`/proc/${process.pid}/status`, 'utf8')
        : '';
      mostKb = Math.max(mostKb, Number(/VmHWM:\s+(\d+)/.exec(text)?.[1] ?? 0));
      await sleep(50);
    }
    expect((await process.ended).status).toBe(0);
    expect(stateOf(node)).toMatchObject({ kind: 'success' });
    const output = readFileSync(join(node.stateDir, 'commands/a.output'), 'utf8');
    expect([output.length, output.slice(0, 19), output.slice(-5)]).toEqual([
      65_536,
      '...[truncated]...\nx',
      'xend\n',
    ]);
    tellFigure(`memory of a command that prints 1 GB: ${(mostKb / 1024).toFixed(0)} MB`);
    expect(mostKb).toBeLessThan(200 * 1024);
  });

  it('tells how a command ended, and what it said, once a full disk has room again', async () => {
    const node = makeCommandsNode();
    mountSmall(node.stateDir, 'size=512k');
    mkdirSync(join(node.stateDir, 'commands'));
    const go = join(node.root, 'go');
    accept(node, `until [ -e ${go} ]; do sleep 0.05; done; echo printed; exit 3`);
    const running = startProcess(inject('reeveBin'), ['command', 'run', '--', 'a'], node.env);
    await until(() => 'group' in stateOf(node));
    const makeRoom = fillDisk(node.stateDir);
    writeFileSync(go, '');
    await running.waitFor('waits for its');
    expect(stateOf(node)['kind']).toBe('running');
    makeRoom();
    expect((await running.ended).status).toBe(0);
    expect(await lookAtCommand(await contextOf(node), 'a')).toEqual({
      ...{ status: 'failed', exit_code: 3, error: 'exit status 3', output: 'printed\n' },
    });
    expect(readdirSync(join(node.stateDir, 'commands')).filter((name) => name.startsWith('.'))).toEqual([]);
  });

  it('has nothing to do for a command that is no more, and refuses one whose record is damaged', async () => {
    const node = makeCommandsNode();
    expect(await node.reeve('command', 'run', '--', 'nobody')).toMatchObject({ status: 0 });
    accept(node, 'true');
    writeFileSync(join(node.stateDir, 'commands/a.json'), '{}');
    expect(await node.reeve('command', 'run', '--', 'a')).toMatchObject({ status: 65 });
    expect(readFileSync(join(node.stateDir, 'commands/a.json'), 'utf8')).toBe('{}');
  });

  it('ends with its command, whose directory is on a disk that never answers', async () => {
    const node = makeCommandsNode();
    const dir = join(node.root, 'dead');
    mountDead(dir);
    accept(node, 'true', dir);
    const running = startProcess(inject('reeveBin'), ['command', 'run', '--', 'a'], node.env);
    await until(() => isAskingDead(running.pid));
    running.child.kill('SIGTERM');
    await running.ended;
    expect(stateOf(node)).toMatchObject({ kind: 'failed', error: 'interrupted: its unit was stopped' });
  });

  it.each([
    ['is damaged', 'commands: {', /reeve\.yaml/],
    ['is gone', undefined, /^cannot read .*reeve\.yaml: /],
    ['has no such section', '{}', /^section commands is missing/],
    ['has a wrong key', '{"commands":{"token":"x","machine_id":7,"user":5}}', /commands\.user/],
  ] as const)('fails the command where the configuration %s, and says so', async (_, text, told) => {
    const node = makeCommandsNode();
    accept(node, 'true');
    if (text === undefined) rmSync(node.configFile);
    else writeFileSync(node.configFile, text);
    const { status } = await node.reeve('command', 'run', '--', 'a');
    expect(status).toBe(78);
    expect(stateOf(node)).toMatchObject({ kind: 'failed', exitCode: -1, error: expect.stringMatching(told) });
  });

  it('is busy where another one has the command, and says so with 75', async () => {
    const node = makeCommandsNode();
    const go = join(node.root, 'go');
    accept(node, `until [ -e ${go} ]; do sleep 0.05; done; sleep 1`);
    const first = startProcess(inject('reeveBin'), ['command', 'run', '--', 'a'], node.env);
    await until(() => 'group' in stateOf(node));
    expect(await node.reeve('command', 'run', '--', 'a')).toMatchObject({ status: 75 });
    const waiting = node.reeve('command', 'run', '--wait', '20', '--', 'a');
    writeFileSync(go, '');
    expect(await waiting).toMatchObject({ status: 0 });
    expect((await first.ended).status).toBe(0);
    expect(stateOf(node)).toMatchObject({ kind: 'success' });
  });
});
