// What the container of a job is asked of the engine to be: its network, and what a gate may use.
import { describe, expect, it, onTestFinished } from 'vitest';
import { type JobRuns, makeJobRuns } from '../../support/job-runs.ts';
import { askDocker } from '../../support/node.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;
const wait = 'while [ ! -e /out/go ]; do sleep 0.1; done';

/** With the image's own program. */
const gate = {
  payload: { job_type: 'pre_gate', job_name: 'pre-gate' },
  spec: { steps: [{ image: 'reeve-demo/job:v1' }], envs: { LASTS: '600' }, build_gate: {} },
  image: 'reeve-demo/job:v1',
};

type Document = {
  HostConfig: { NetworkMode: string; Memory: number; NanoCpus: number };
  NetworkSettings: { Networks: Record<string, unknown> };
};

/** The engine's own document of the container while it runs; then the container is let go. */
async function look(runs: JobRuns, job: PloyJob, env: Record<string, string>): Promise<Document> {
  const program = runs.start(['job', 'run', idOf(job)], env);
  await Promise.race([
    runs.ploy.waitUntil('its first line', () => job.chunks.size > 0),
    program.ended.then(({ stderr }) => {
      if (job.chunks.size === 0) throw new Error(stderr);
    }),
  ]);
  const [container = ''] = await runs.containers(job);
  const [document] = JSON.parse(await askDocker(runs.socket, ['inspect', container])) as [Document];
  await askDocker(runs.socket, ['kill', container]);
  expect((await program.ended).status).toBe(0);
  expect(job.completions).toMatchObject([{ status: 'Error', exit_code: 137 }]);
  expect(runs.ploy.state.violations).toEqual([]);
  return document;
}

/** An image whose own program takes 200 MiB. */
async function makeGreedyImage(socket: string): Promise<string> {
  const image = `reeve-test-greedy-${process.pid}:${Date.now()}`;
  const container = (await askDocker(socket, ['create', 'reeve-demo/box:v1', 'true'])).trim();
  const change = 'CMD ["tail", "-c", "200m", "/dev/zero"]';
  await askDocker(socket, ['commit', '--change', change, '--change', 'ENTRYPOINT []', container, image]);
  await askDocker(socket, ['rm', container]);
  onTestFinished(async () => {
    await askDocker(socket, ['rmi', '-f', image]);
  });
  return image;
}

describe('P50, PLOY_DOCKER_NETWORK', () => {
  it('is the network of a mig and of a gate', async () => {
    const runs = await makeJobRuns();
    const network = `reeve-test-${process.pid}-${Date.now()}`;
    await askDocker(runs.socket, ['network', 'create', network]);
    onTestFinished(async () => {
      await askDocker(runs.socket, ['network', 'rm', network]);
    });
    for (const options of [{ command: `echo begun; ${wait}` }, gate]) {
      const document = await look(runs, runs.claim(options), { PLOY_DOCKER_NETWORK: ` ${network} ` });
      expect(document.HostConfig.NetworkMode).toBe(network);
      expect(Object.keys(document.NetworkSettings.Networks)).toEqual([network]);
    }
  });

  it.each([
    ['none', 'none'],
    ['', 'bridge'],
  ])('of %j is the network %s', async (value, network) => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: `echo begun; ${wait}` });
    const document = await look(runs, job, { PLOY_DOCKER_NETWORK: value });
    expect(Object.keys(document.NetworkSettings.Networks)).toEqual([network]);
  });

  it('P59: that is not there is an error of the job that names it, and leaves no container', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'true' });
    const { status } = await runs.start(['job', 'run', idOf(job)], { PLOY_DOCKER_NETWORK: 'no-such-network' })
      .ended;
    expect(status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
    expect(job.completions[0]?.stats?.error).toMatch(/no-such-network/);
    expect([runs.isClosed(job), await runs.containers(job)]).toEqual([true, []]);
  });
});

describe('P50, what a gate may use', () => {
  const limits = {
    PLOY_BUILDGATE_LIMIT_CPU_MILLIS: '250',
    PLOY_BUILDGATE_LIMIT_MEMORY_BYTES: '64m',
  };

  it('is what the variables say', async () => {
    const runs = await makeJobRuns();
    const { HostConfig } = await look(runs, runs.claim(gate), limits);
    expect(HostConfig).toMatchObject({ Memory: 64 << 20, NanoCpus: 250_000_000 });
  });

  it('is not what a mig may use', async () => {
    const runs = await makeJobRuns();
    const { HostConfig } = await look(runs, runs.claim({ command: `echo begun; ${wait}` }), limits);
    expect(HostConfig).toMatchObject({ Memory: 0, NanoCpus: 0 });
  });

  it('P57: is held by the engine: a gate that needs more memory is an error that says so', async () => {
    const runs = await makeJobRuns();
    const image = await makeGreedyImage(runs.socket);
    const job = runs.claim({ ...gate, image, spec: { ...gate.spec, steps: [{ image }] } });
    expect((await runs.start(['job', 'run', idOf(job)], limits).ended).status).toBe(0);
    expect(job.completions).toMatchObject([
      {
        status: 'Error',
        exit_code: 137,
        stats: { error: 'the container ran out of memory', gate: { passed: false } },
      },
    ]);
    expect(job.events.map(({ message }) => message)).toEqual([
      `job ${idOf(job)}: its container ran out of memory`,
    ]);
  });

  it('P59: a disk limit that this engine cannot hold is an error in its words, and leaves no container', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim(gate);
    const env = { PLOY_BUILDGATE_LIMIT_DISK_SPACE: '1G' };
    expect((await runs.start(['job', 'run', idOf(job)], env).ended).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
    expect(job.completions[0]?.stats?.error).toMatch(/storage-opt|storage option|quota/i);
    expect([runs.isClosed(job), await runs.containers(job)]).toEqual([true, []]);
  });
});
