// What a job's container has used, as the server is told of it, and what it costs to know.
import { describe, expect, it } from 'vitest';
import { until } from '../../support/balanced.ts';
import { engineSocket } from '../../support/engine.ts';
import { startEngineProxy } from '../../support/engine-proxy.ts';
import { makeJobRuns } from '../../support/job-runs.ts';
import { askDocker } from '../../support/node.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;

/** Tells the time of the container's own cgroup in nanoseconds, whichever version the machine has. */
const ownTime = [
  'own() { if [ -e /sys/fs/cgroup/cpuacct/cpuacct.usage ]; then cat /sys/fs/cgroup/cpuacct/cpuacct.usage',
  `else awk '/^usage_usec/ { print $2 "000" }' /sys/fs/cgroup/cpu.stat; fi; }`,
].join('; ');

const resourcesOf = (job: PloyJob) => job.completions[0]?.stats?.job_resources;

describe('P51, job_resources: what a job has used', () => {
  it('tells its time of the CPU, the peak of its memory and what it has written', async () => {
    const runs = await makeJobRuns();
    // 40 MiB at once and let go of again, four seconds of work, 3 MiB on the container's own disk.
    const command = [
      ownTime,
      'head -c 3145728 /dev/zero > /written',
      'head -c 41943040 /dev/zero | tail -c 41943040 > /dev/null',
      'while [ "$(own)" -lt 4000000000 ]; do :; done',
      'own > /out/ns',
    ].join('; ');
    const job = runs.claim({ command });
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    const used = resourcesOf(job);
    const trueNs = Number(runs.artifact(job, 'out/ns'));
    console.log(`figure: a job that has used ${trueNs} ns is told as ${JSON.stringify(used)}`);
    expect(used?.cpu_consumed_ns).toBeGreaterThan(trueNs / 2);
    // What its end itself takes comes on top.
    expect(used?.cpu_consumed_ns).toBeLessThan(trueNs + 100_000_000);
    expect(used?.mem_consumed_bytes).toBeGreaterThan(20 << 20);
    expect(used?.mem_consumed_bytes).toBeLessThan(500 << 20);
    expect(used?.disk_consumed_bytes).toBeGreaterThanOrEqual(3 << 20);
    expect(runs.ploy.state.violations).toEqual([]);
  });

  it('costs a job of true no request for what it uses', async () => {
    const proxy = await startEngineProxy(engineSocket());
    const runs = await makeJobRuns(proxy.socket);
    const job = runs.claim({ command: 'true' });
    const end = await runs.start(['job', 'run', idOf(job), '--json']).ended;
    expect(end.status).toBe(0);
    const { steps } = JSON.parse(end.stdout) as { steps: { name: string; ms: number }[] };
    const waitMs = steps.find(({ name }) => name === 'wait')?.ms ?? 0;
    const asked = proxy.lines.filter((line) => line.endsWith('/stats')).length;
    // None, unless the machine is so busy that even this takes half a second.
    expect(asked).toBeLessThanOrEqual(Math.floor(waitMs / 450));
    expect(job.completions).toMatchObject([{ status: 'Success' }]);
    console.log(`figure: a job of true has ${proxy.lines.length} requests to the engine`);
  });

  it('is kept on disk: a container that ended while nobody looked is told with what was seen of it', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'while [ ! -e /out/go ]; do echo on; sleep 0.2; done' });
    const program = runs.start(['job', 'run', idOf(job)]);
    const seen = () => runs.record(job, 'progress.json')['usage'] as { cpuNs: number; memoryBytes: number };
    await runs.ploy.waitUntil('its usage on disk', () => seen()?.cpuNs > 0);
    program.child.kill('SIGKILL');
    await program.ended;
    const [container = ''] = await runs.containers(job);
    await askDocker(runs.socket, ['exec', container, 'touch', '/out/go']);
    await askDocker(runs.socket, ['wait', container]);
    const { cpuNs, memoryBytes } = seen();
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(resourcesOf(job)).toMatchObject({ cpu_consumed_ns: cpuNs, mem_consumed_bytes: memoryBytes });
  });

  it('is never waited for: an engine that does not answer such a question delays no end', async () => {
    const proxy = await startEngineProxy(engineSocket());
    let asked = 0;
    proxy.beforeRequest = async (line) => {
      if (!line.endsWith('/stats')) return;
      asked += 1;
      await new Promise(() => {});
    };
    const runs = await makeJobRuns(proxy.socket);
    const job = runs.claim({ command: 'while [ ! -e /out/go ]; do sleep 0.1; done' });
    const program = runs.start(['job', 'run', idOf(job), '--json']);
    await until(() => asked > 0, 60_000);
    const [container = ''] = await runs.containers(job);
    await askDocker(engineSocket(), ['exec', container, 'touch', '/out/go']);
    const end = await program.ended;
    expect([end.status, end.stderr, asked]).toEqual([0, '', 1]);
    expect(resourcesOf(job)).toMatchObject({ cpu_consumed_ns: 0, mem_consumed_bytes: 0 });
    const { steps } = JSON.parse(end.stdout) as { steps: { name: string; at: string; ms: number }[] };
    const at = (name: string) => steps.find((step) => step.name === name) ?? { at: '', ms: 0 };
    // An answer of the engine is waited for for 30 s.
    expect(Date.parse(at('complete').at) - Date.parse(at('wait').at)).toBeLessThan(15_000);
    expect(runs.isClosed(job)).toBe(true);
  });
});
