// Letting go of old commands: which go, when, and that nobody who asks meanwhile notices.
import { mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { until } from '../../support/balanced.ts';
import {
  aCommandRecord,
  type CommandsNode,
  echoRequest,
  makeCommandsNode,
  shellRequest,
} from '../../support/commands-node.ts';
import { startProcess } from '../../support/programs.ts';
import { tellFigure } from '../../support/system.ts';

/** `REEVE_COMMANDS=10000`, as `scripts/test long` has it, is what is promised. */
const many = Number(process.env['REEVE_COMMANDS'] ?? 4_000);

describe('the sweep', () => {
  const ended = (key: string, endedAt: Date, state: object = { kind: 'success' }) =>
    aCommandRecord(
      { startedAt: endedAt.toISOString(), endedAt: endedAt.toISOString(), ...state },
      { jobId: key },
    );

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
        request: echoRequest,
        startedAt: ago(6_000).toISOString(),
        runner: { pid: runner.pid, startTime: fields[21] },
      };
      node.writeRecord('runs', aCommandRecord(running, { jobId: 'runs' }));
      utimesSync(join(node.stateDir, 'commands/runs.json'), ago(6_000), ago(6_000));
      const { client, holder } = await node.serve();
      await client.health();
      await until(() => holder.log().includes('forgot 1 old commands'));
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
    const { client } = await node.serve(60);
    const begunAtMs = Date.now();
    await client.dispatch(shellRequest('a', 'true'));
    await client.wait('a');
    const endedAtMs = Date.now();
    await until(() => node.files().length === 0);
    expect(Date.now() - begunAtMs).toBeGreaterThanOrEqual(2_000);
    expect(Date.now() - endedAtMs).toBeLessThan(15_000);
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

  it('of thousands of commands slows nobody who asks for one (A43)', async () => {
    const node = makeCommandsNode({ job_retention: '1h' });
    const old = new Date(Date.now() - 2 * 3_600_000);
    writeEnded(node, 'asked', new Date());
    const { client, holder } = await node.serve(100);
    const askedMs = async (): Promise<number> => {
      const startedAtMs = performance.now();
      expect(await client.look('asked')).toMatchObject({ status: 'success' });
      const tookMs = performance.now() - startedAtMs;
      // In both parts: who asks without a pause is served faster on a machine that has other work.
      await sleep(5);
      return tookMs;
    };
    const quiet: number[] = [];
    for (let count = 0; count < 400; count += 1) quiet.push(await askedMs());
    for (let index = 0; index < many; index += 1) writeEnded(node, `old-${index}`, old);
    // The next API begins with a sweep.
    process.kill(holder.servicePid() as number, 'SIGTERM');
    await until(() => holder.servicePid() === undefined);
    const busy: number[] = [];
    const lastMs = performance.now() + 240_000;
    while (!holder.log().includes(`forgot ${many} old commands`)) {
      busy.push(await askedMs());
      if (performance.now() > lastMs) throw new Error('the sweep does not end');
    }
    const slow = (times: readonly number[]): number =>
      [...times].sort((a, b) => a - b)[Math.floor(times.length * 0.95)] ?? 0;
    tellFigure(
      `GET p95: ${slow(quiet).toFixed(1)} ms, during a sweep ${slow(busy).toFixed(1)} ms of ${busy.length}`,
    );
    expect(node.files()).toEqual(['asked.json', 'asked.output']);
    expect(busy.length).toBeGreaterThan(20);
    expect(slow(busy)).toBeLessThan(Math.max(20, slow(quiet) * 3));
  }, 300_000);
});
