// The API and its commands over time: what restarts, kills, reboots and years of old commands do to them.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createAgendaClient } from '../../support/agenda/client.ts';
import { until } from '../../support/balanced.ts';
import {
  aCommandRecord,
  type CommandsNode,
  echoRequest,
  makeCommandsNode,
  nodeToken,
  shellRequest,
} from '../../support/commands-node.ts';

const runnerOf = (node: CommandsNode, key: string): number =>
  (node.record(key) as { state: { runner: { pid: number } } }).state.runner.pid;

describe('a command', () => {
  it('goes on while the API has ended, and the next one tells how it ended (A40, A41)', async () => {
    const node = makeCommandsNode();
    const { client, holder } = await node.serve(0.05);
    const go = join(node.root, 'go');
    await client.dispatch(shellRequest('a', `until [ -e ${go} ]; do sleep 0.05; done; echo end`));
    await until(() => holder.servicePid() === undefined);
    writeFileSync(go, '');
    await until(() => node.files().includes('a.output'));
    await until(async () => {
      const view = await client.look('a');
      return 'output' in view && view.status === 'success';
    });
    expect(holder.starts()).toBeGreaterThan(1);
    expect(await client.look('a')).toEqual({ status: 'success', exit_code: 0, output: 'end\n' });
  });

  it('outlives an API that is killed', async () => {
    const node = makeCommandsNode();
    const { client, holder } = await node.serve();
    const go = join(node.root, 'go');
    await client.dispatch(shellRequest('a', `until [ -e ${go} ]; do sleep 0.05; done; echo end`));
    await until(
      () =>
        existsSync(join(node.stateDir, 'commands/a.json')) &&
        'runner' in (node.record('a')['state'] as object),
    );
    process.kill(holder.servicePid() as number, 'SIGKILL');
    writeFileSync(go, '');
    expect(await client.wait('a')).toEqual({ status: 'success', exit_code: 0, output: 'end\n' });
  });

  it('has failed where its process was killed, and what it had started has ended', async () => {
    const node = makeCommandsNode();
    const { client } = await node.serve();
    const alive = join(node.root, 'alive');
    await client.dispatch(shellRequest('a', `while :; do date > ${alive}; sleep 0.02; done`));
    await until(() => existsSync(alive));
    await until(() => 'group' in (node.record('a')['state'] as object));
    process.kill(runnerOf(node, 'a'), 'SIGKILL');
    expect(await client.wait('a')).toEqual({
      ...{ status: 'failed', exit_code: -1, output: '' },
      error: 'interrupted: its process was killed',
    });
    writeFileSync(alive, 'last');
    await sleep(200);
    expect(readFileSync(alive, 'utf8')).toBe('last');
  });

  it('has failed where its process is told to stop, with what it had said', async () => {
    const node = makeCommandsNode();
    const { client } = await node.serve();
    const begun = join(node.root, 'begun');
    await client.dispatch(shellRequest('a', `echo begun; touch ${begun}; sleep 60`));
    await until(() => existsSync(begun));
    process.kill(runnerOf(node, 'a'), 'SIGTERM');
    expect(await client.wait('a')).toEqual({
      ...{ status: 'failed', exit_code: -1, output: 'begun\n' },
      error: 'interrupted: its unit was stopped',
    });
  });

  it.each([
    ['accepted', { kind: 'accepted', request: echoRequest }],
    [
      'running',
      {
        kind: 'running',
        request: echoRequest,
        startedAt: '2026-06-04T03:00:01.000Z',
        runner: { pid: process.pid, startTime: '1' },
      },
    ],
  ])('has failed where it was %s before a reboot, and is not run again', async (_, state) => {
    const node = makeCommandsNode();
    node.writeRecord('a', aCommandRecord(state, { bootId: 'another-boot' }));
    const { client } = await node.serve();
    const failed = { status: 'failed', exit_code: -1, output: '', error: 'interrupted by a reboot' };
    expect(await client.look('a')).toEqual(failed);
    expect(await client.dispatch(shellRequest('a', 'echo again'))).toBe('a');
    expect(await client.look('a')).toEqual(failed);
    expect(JSON.stringify(node.record('a'))).not.toContain('echo ran');
  });

  it('is begun by whoever asks for it where its start was lost', async () => {
    const node = makeCommandsNode();
    const go = join(node.root, 'go');
    const request = { ...echoRequest, shell: `until [ -e ${go} ]; do sleep 0.05; done; echo ran` };
    node.writeRecord('a', aCommandRecord({ kind: 'accepted', request }));
    const { client } = await node.serve();
    expect(await client.look('a')).toEqual({ status: 'running', exit_code: 0, output: '' });
    writeFileSync(go, '');
    expect(await client.wait('a')).toEqual({ status: 'success', exit_code: 0, output: 'ran\n' });
  });

  it('has failed where its record is damaged, is not run again, and can be deleted', async () => {
    const node = makeCommandsNode();
    mkdirSync(join(node.stateDir, 'commands'), { recursive: true });
    writeFileSync(join(node.stateDir, 'commands/a.json'), '{"version":1,"jobId":"a","sta');
    const { client } = await node.serve();
    expect(await client.look('a')).toMatchObject({
      status: 'failed',
      error: 'the record of the job is damaged',
    });
    expect(await client.dispatch(shellRequest('a', 'true'))).toBe('a');
    expect(await client.look('a')).toMatchObject({ status: 'failed' });
    expect(await client.delete('a')).toBeUndefined();
    expect(await client.look('a')).toMatchObject({ status: 404 });
  });

  it('is gone where whoever deleted it was killed over it, and its id may be used again', async () => {
    const node = makeCommandsNode();
    const ran = join(node.root, 'ran');
    for (const id of ['a', 'b']) {
      const once = { ...echoRequest, jobId: id, shell: `touch ${ran}` };
      node.writeRecord(id, aCommandRecord({ kind: 'accepted', request: once }, { jobId: id }));
      const note = { version: 1, generation: 'g-1', at: '2026-06-04T03:00:01.000Z' };
      writeFileSync(join(node.stateDir, `commands/${id}.cancel-g-1`), JSON.stringify(note));
    }
    const { client } = await node.serve();
    expect(await client.look('a')).toMatchObject({ status: 404 });
    expect(await client.dispatch(shellRequest('a', 'echo next'))).toBe('a');
    expect(await client.wait('a')).toEqual({ status: 'success', exit_code: 0, output: 'next\n' });
    expect(await client.delete('b')).toBeUndefined();
    expect(existsSync(ran)).toBe(false);
    expect(node.files()).toEqual(['a.json', 'a.output']);
  });

  it('keeps nothing of a note about another one of its name', async () => {
    const node = makeCommandsNode();
    node.writeRecord('a', aCommandRecord({ kind: 'accepted', request: echoRequest }));
    const note = { version: 1, generation: 'another', at: '2026-06-04T03:00:01.000Z' };
    writeFileSync(join(node.stateDir, 'commands/a.cancel-another'), JSON.stringify(note));
    const { client } = await node.serve();
    expect(await client.wait('a')).toMatchObject({ status: 'success', output: 'ran\n' });
  });

  it('runs once, however often it is started', async () => {
    const node = makeCommandsNode();
    const counter = join(node.root, 'counter');
    const once = { ...echoRequest, shell: `echo x >> ${counter}; sleep 0.3` };
    node.writeRecord('a', aCommandRecord({ kind: 'accepted', request: once }));
    const ends = await Promise.all([1, 2, 3].map(() => node.reeve('command', 'run', '--', 'a')));
    expect(ends.map(({ status }) => status).sort()).toEqual(expect.arrayContaining([0]));
    expect(ends.every(({ status }) => status === 0 || status === 75)).toBe(true);
    expect((await node.reeve('command', 'run', '--', 'a')).status).toBe(0);
    expect(readFileSync(counter, 'utf8')).toBe('x\n');
  });

  it('leaves no lock behind it', async () => {
    const node = makeCommandsNode();
    const { client } = await node.serve();
    await client.dispatch(shellRequest('a', 'true'));
    await client.wait('a');
    await until(() => !existsSync(join(node.root, 'run/locks/command@a.lock')));
    expect(node.files()).toEqual(['a.json', 'a.output']);
  });

  it('runs as the user that the section names, with its home (A52)', async () => {
    const { client } = await makeCommandsNode({ user: 'nobody' }).serve();
    await client.dispatch(shellRequest('a', 'id -un; echo "$HOME $USER"'));
    expect(await client.wait('a')).toMatchObject({ output: 'nobody\n/nonexistent nobody\n' });
  });

  it('does not run where its user is none of the machine', async () => {
    const { client } = await makeCommandsNode({ user: 'no-such-user' }).serve();
    await client.dispatch(shellRequest('a', 'id -un'));
    expect(await client.wait('a')).toMatchObject({
      ...{ status: 'failed', output: '' },
      error: 'cannot run anything as "no-such-user": the machine has no such user',
    });
  });
});

describe('live output', () => {
  it('is told while a command runs, where the section wants it (A38)', async () => {
    const node = makeCommandsNode({ live_output: true, max_output_bytes: 40 });
    const { port } = await node.serve();
    const go = join(node.root, 'go');
    const client = createAgendaClient({ port, token: nodeToken, isLive: true });
    await client.dispatch(shellRequest('a', `seq 100; until [ -e ${go} ]; do sleep 0.05; done; echo end`));
    const tail = '...[truncated]...\n94\n95\n96\n97\n98\n99\n100\n';
    await expect
      .poll(() => client.look('a'), { timeout: 20_000 })
      .toEqual({
        ...{ status: 'running', exit_code: 0, output: tail },
      });
    writeFileSync(go, '');
    expect(await client.wait('a')).toMatchObject({
      output: '...[truncated]...\n5\n96\n97\n98\n99\n100\nend\n',
    });
  });
});
