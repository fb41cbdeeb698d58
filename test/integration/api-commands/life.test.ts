// The API and its commands over time: what restarts, kills, reboots and years of old commands do to them.
import { existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createAgendaClient } from '../../support/agenda/client.ts';
import { type CommandsNode, makeCommandsNode, nodeBoot, nodeToken } from '../../support/commands-node.ts';
import { startProcess } from '../../support/programs.ts';

const request = { jobId: 'a', dir: '/', env: [], mode: 'shell', shell: 'echo ran' };
const shell = (id: string, text: string) => ({ job_id: id, dir: '/', mode: 'shell', shell: text });
const aRecord = (state: object, more: object = {}) => ({
  ...{ jobId: 'a', generation: 'g-1', acceptedAt: '2026-06-04T03:00:00.000Z', bootId: nodeBoot, state },
  ...more,
});

async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  for (let left = 1_000; !(await what()); left -= 1) {
    if (left === 0) throw new Error('it has not come');
    await sleep(20);
  }
}

const runnerOf = (node: CommandsNode, key: string): number =>
  (node.record(key) as { state: { runner: { pid: number } } }).state.runner.pid;

describe('a command', () => {
  it('goes on while the API has ended, and the next one tells how it ended (A40, A41)', async () => {
    const node = makeCommandsNode();
    const { client, holder } = await node.serve(0.05);
    const go = join(node.root, 'go');
    await client.dispatch(shell('a', `until [ -e ${go} ]; do sleep 0.05; done; echo end`));
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
    await client.dispatch(shell('a', `until [ -e ${go} ]; do sleep 0.05; done; echo end`));
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
    await client.dispatch(shell('a', `while :; do date > ${alive}; sleep 0.02; done`));
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
    await client.dispatch(shell('a', `echo begun; touch ${begun}; sleep 60`));
    await until(() => existsSync(begun));
    process.kill(runnerOf(node, 'a'), 'SIGTERM');
    expect(await client.wait('a')).toEqual({
      ...{ status: 'failed', exit_code: -1, output: 'begun\n' },
      error: 'interrupted: its unit was stopped',
    });
  });

  it.each([
    ['accepted', { kind: 'accepted', request }],
    [
      'running',
      {
        kind: 'running',
        request,
        startedAt: '2026-06-04T03:00:01.000Z',
        runner: { pid: process.pid, startTime: '1' },
      },
    ],
  ])('has failed where it was %s before a reboot, and is not run again', async (_, state) => {
    const node = makeCommandsNode();
    node.writeRecord('a', aRecord(state, { bootId: 'another-boot' }));
    const { client } = await node.serve();
    const failed = { status: 'failed', exit_code: -1, output: '', error: 'interrupted by a reboot' };
    expect(await client.look('a')).toEqual(failed);
    expect(await client.dispatch(shell('a', 'echo again'))).toBe('a');
    expect(await client.look('a')).toEqual(failed);
    expect(JSON.stringify(node.record('a'))).not.toContain('echo ran');
  });

  it('is begun by whoever asks for it where its start was lost', async () => {
    const node = makeCommandsNode();
    node.writeRecord('a', aRecord({ kind: 'accepted', request }));
    const { client } = await node.serve();
    expect(await client.look('a')).toEqual({ status: 'running', exit_code: 0, output: '' });
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
    expect(await client.dispatch(shell('a', 'true'))).toBe('a');
    expect(await client.look('a')).toMatchObject({ status: 'failed' });
    expect(await client.delete('a')).toBeUndefined();
    expect(await client.look('a')).toMatchObject({ status: 404 });
  });

  it('runs once, however often it is started', async () => {
    const node = makeCommandsNode();
    const counter = join(node.root, 'counter');
    const once = { ...request, shell: `echo x >> ${counter}; sleep 0.3` };
    node.writeRecord('a', aRecord({ kind: 'accepted', request: once }));
    const ends = await Promise.all([1, 2, 3].map(() => node.reeve('command', 'run', '--', 'a')));
    expect(ends.map(({ status }) => status).sort()).toEqual(expect.arrayContaining([0]));
    expect(ends.every(({ status }) => status === 0 || status === 75)).toBe(true);
    expect((await node.reeve('command', 'run', '--', 'a')).status).toBe(0);
    expect(readFileSync(counter, 'utf8')).toBe('x\n');
  });

  it('leaves no lock behind it', async () => {
    const node = makeCommandsNode();
    const { client } = await node.serve();
    await client.dispatch(shell('a', 'true'));
    await client.wait('a');
    await until(() => !existsSync(join(node.root, 'run/locks/command@a.lock')));
    expect(node.files()).toEqual(['a.json', 'a.output']);
  });

  it('runs as the user that the section names, with its home (A52)', async () => {
    const { client } = await makeCommandsNode({ user: 'nobody' }).serve();
    await client.dispatch(shell('a', 'id -un; echo "$HOME $USER"'));
    expect(await client.wait('a')).toMatchObject({ output: 'nobody\n/nonexistent nobody\n' });
  });

  it('does not run where its user is none of the machine', async () => {
    const { client } = await makeCommandsNode({ user: 'no-such-user' }).serve();
    await client.dispatch(shell('a', 'id -un'));
    expect(await client.wait('a')).toMatchObject({
      ...{ status: 'failed', output: '' },
      error: 'cannot run commands as "no-such-user": the machine has no such user',
    });
  });
});

describe('live output', () => {
  it('is told while a command runs, where the section wants it (A38)', async () => {
    const node = makeCommandsNode({ live_output: true, max_output_bytes: 40 });
    const { port } = await node.serve();
    const go = join(node.root, 'go');
    const client = createAgendaClient({ port, token: nodeToken, isLive: true });
    await client.dispatch(shell('a', `seq 100; until [ -e ${go} ]; do sleep 0.05; done; echo end`));
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

describe('the sweep', () => {
  const ended = (key: string, endedAt: Date, state: object = { kind: 'success' }) =>
    aRecord({ startedAt: endedAt.toISOString(), endedAt: endedAt.toISOString(), ...state }, { jobId: key });

  function writeEnded(node: CommandsNode, key: string, endedAt: Date): void {
    node.writeRecord(key, ended(key, endedAt));
    const file = join(node.stateDir, 'commands', key);
    writeFileSync(`${file}.output`, 'out\n');
    for (const name of [`${file}.json`, `${file}.output`]) utimesSync(name, endedAt, endedAt);
  }

  it('removes what ended longer ago than it is kept, and never what runs (A24, A43, A44)', async () => {
    const node = makeCommandsNode({ job_retention: '1h' });
    const ago = (minutes: number): Date => new Date(Date.now() - minutes * 60_000);
    writeEnded(node, 'old', ago(61));
    writeEnded(node, 'young', ago(59));
    writeEnded(node, 'future', ago(-600));
    const runner = startProcess('sleep', ['60']);
    try {
      const fields = readFileSync(`/proc/${runner.pid}/stat`, 'utf8').split(' ');
      const running = {
        kind: 'running',
        request,
        startedAt: ago(6_000).toISOString(),
        runner: { pid: runner.pid, startTime: fields[21] },
      };
      node.writeRecord('runs', aRecord(running, { jobId: 'runs' }));
      utimesSync(join(node.stateDir, 'commands/runs.json'), ago(6_000), ago(6_000));
      const { client } = await node.serve();
      await client.health();
      await until(() => !node.files().includes('old.json') && !node.files().includes('old.output'));
      expect(node.files()).toEqual([
        'future.json',
        'future.output',
        'runs.json',
        'young.json',
        'young.output',
      ]);
      expect(await client.look('old')).toMatchObject({ status: 404 });
      expect(await client.look('runs')).toMatchObject({ status: 'running' });
    } finally {
      runner.child.kill('SIGKILL');
      await runner.ended;
    }
  });

  it('goes on while the API does, every half of the time that commands are kept (A43)', async () => {
    const node = makeCommandsNode({ job_retention: '2s' });
    const { client } = await node.serve();
    await client.dispatch(shell('a', 'true'));
    await client.wait('a');
    const endedAtMs = Date.now();
    await until(() => node.files().length === 0);
    expect(Date.now() - endedAtMs).toBeGreaterThan(1_500);
    expect(Date.now() - endedAtMs).toBeLessThan(6_000);
  });

  it('removes what belongs to no command once it is old', async () => {
    const node = makeCommandsNode();
    const directory = join(node.stateDir, 'commands');
    mkdirSync(directory, { recursive: true });
    const old = new Date(Date.now() - 2 * 3_600_000);
    for (const name of ['gone.output', 'gone.cancel', '.new-1-x-gone', 'fresh.output']) {
      writeFileSync(join(directory, name), '');
      if (name !== 'fresh.output') utimesSync(join(directory, name), old, old);
    }
    const { client } = await node.serve();
    await client.health();
    await until(() => node.files().length === 1);
    expect(node.files()).toEqual(['fresh.output']);
  });

  it('of 10,000 commands slows nobody who asks for one (A43)', async () => {
    const node = makeCommandsNode({ job_retention: '1h' });
    const old = new Date(Date.now() - 2 * 3_600_000);
    writeEnded(node, 'asked', new Date());
    const { client, holder } = await node.serve(100);
    const askedMs = async (): Promise<number> => {
      const startedAtMs = performance.now();
      expect(await client.look('asked')).toMatchObject({ status: 'success' });
      return performance.now() - startedAtMs;
    };
    const quiet: number[] = [];
    for (let count = 0; count < 200; count += 1) quiet.push(await askedMs());
    for (let index = 0; index < 10_000; index += 1) writeEnded(node, `old-${index}`, old);
    // The next API begins with a sweep.
    process.kill(holder.servicePid() as number, 'SIGTERM');
    await until(() => holder.servicePid() === undefined);
    const busy: number[] = [];
    const lastMs = performance.now() + 100_000;
    while (!holder.log().includes('forgot 10000 old commands')) {
      busy.push(await askedMs());
      if (performance.now() > lastMs) throw new Error('the sweep does not end');
      await sleep(5);
    }
    const slow = (times: readonly number[]): number =>
      [...times].sort((a, b) => a - b)[Math.floor(times.length * 0.95)] ?? 0;
    console.log(
      `GET p95: ${slow(quiet).toFixed(1)} ms, during a sweep ${slow(busy).toFixed(1)} ms of ${busy.length}`,
    );
    expect(node.files()).toEqual(['asked.json', 'asked.output']);
    expect(busy.length).toBeGreaterThan(20);
    expect(slow(busy)).toBeLessThan(Math.max(50, slow(quiet) * 5));
  });
});
