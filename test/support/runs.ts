// Runs of schedules in a real engine: fires that are due now whatever the time is, containers of earlier ones, and what the
// engine has started.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { EngineProxy } from './engine-proxy.ts';
import { askDocker, type ReeveEnd, type RunningReeve, type TestNode, untilListedAsEnded } from './node.ts';

/** A daily schedule that has been due for a few minutes, and its fire. The next is a day away: no test is overtaken by it. */
export type DueFire = { cron: string; fireMs: number; firedAt: string; earlierMs: number };

const minuteMs = 60_000;

export function aDueFire(): DueFire {
  const fire = new Date(Math.floor(Date.now() / minuteMs) * minuteMs - 3 * minuteMs);
  return {
    cron: `${fire.getUTCMinutes()} ${fire.getUTCHours()} * * *`,
    fireMs: fire.getTime(),
    firedAt: fire.toISOString(),
    earlierMs: fire.getTime() - 24 * 60 * minuteMs,
  };
}

/** One run that ends at once with 0. */
export function aJobDeploy(overrides: Readonly<Record<string, unknown>> = {}): object {
  return {
    service: 'nightly',
    image: 'reeve-demo/job:v1',
    memory: 64,
    rollout: { stopGrace: '5s' },
    ...overrides,
  };
}

/** The last fires that the node believes in. */
export function setFires(node: TestNode, fires: Readonly<Record<string, number>>): void {
  const named = Object.entries(fires).map(([service, at]) => [`${node.project}/${service}`, at]);
  node.writeState('cron.json', { version: 1, fires: Object.fromEntries(named) });
}

/** A scheduled service whose fire is due at the next tick. */
export async function deployDue(
  node: TestNode,
  overrides: Readonly<Record<string, unknown>> = {},
): Promise<DueFire> {
  const due = aDueFire();
  await node.deploy([aJobDeploy({ cron: due.cron, ...overrides })]);
  setFires(node, { nightly: due.earlierMs });
  return due;
}

/** The container of a run that somebody has started before. */
export async function startEarlierRun(
  node: TestNode,
  { fireMs, env = {} }: { fireMs: number; env?: Readonly<Record<string, string>> },
): Promise<string> {
  const labels = {
    'launchpad.managed': 'true',
    'launchpad.project': node.project,
    'launchpad.service': 'nightly',
    'launchpad.image': 'reeve-demo/job:v1',
    'launchpad.replica': '0',
    'launchpad.cronFire': String(fireMs),
    'reeve.node': node.nodeId,
  };
  const flags = (flag: string, values: Readonly<Record<string, string>>): string[] =>
    Object.entries(values).flatMap(([name, value]) => [flag, `${name}=${value}`]);
  const id = await askDocker(node.socket, [
    ...['run', '-d', '--name', `launchpad_${node.project}_nightly_0`],
    ...flags('--label', labels),
    ...flags('--env', env),
    'reeve-demo/job:v1',
  ]);
  return id.trim();
}

/** What the engine has started of the node's project since the instant, as `<service> <fire or run id>`. */
export async function listStarts(socket: string, project: string, since: Date): Promise<string[]> {
  const attribute = (name: string): string => `{{index .Actor.Attributes "launchpad.${name}"}}`;
  const listed = await askDocker(socket, [
    ...['events', '--since', String(since.getTime() / 1000), '--until', String(Date.now() / 1000)],
    ...[
      '--filter',
      'type=container',
      '--filter',
      'event=start',
      '--filter',
      `label=launchpad.project=${project}`,
    ],
    ...['--format', `${attribute('service')} ${attribute('cronFire')}${attribute('jobRun')}`],
  ]);
  return listed.split('\n').filter((line) => line !== '');
}

/** Until the run's container has ended, and the engine lists it so. */
export async function waitForEnd(node: TestNode, service = 'nightly'): Promise<void> {
  const name = `launchpad_${node.project}_${service}_0`;
  await askDocker(node.socket, ['wait', name]);
  await untilListedAsEnded(node.socket, name);
}

/** A tick that has to go well. */
export async function tick(node: TestNode, ...flags: string[]): Promise<string[]> {
  const end = await node.reeve('reconcile', '--json', ...flags);
  expect([end.status, end.json().troubles]).toEqual([0, []]);
  return actionsOf(end);
}

/** A deploy that waits, and ticks until it is content. Throws where it fails. */
export async function deployAndTick(node: TestNode, services: readonly object[]): Promise<void> {
  const deployed = node.deploy(services, '--wait').then(() => true);
  for (let isDone = false; !isDone; ) {
    await node.reeve('reconcile');
    isDone = await Promise.race([deployed, sleep(200, false)]);
  }
}

export function actionsOf(end: ReeveEnd): string[] {
  return end.json().actions.map(({ action, service }) => `${action} ${service}`);
}

/** The nth change asked of the engine does not come through, or its answer does not: the process is killed there. */
export async function killAtChange(
  proxy: EngineProxy,
  moment: 'beforeRequest' | 'beforeAnswer',
  n: number,
  start: () => RunningReeve,
): Promise<boolean> {
  let seen = 0;
  let run: RunningReeve | undefined;
  proxy[moment] = async (line) => {
    if (line.startsWith('GET ')) return;
    seen += 1;
    if (seen !== n) return;
    run?.child.kill('SIGKILL');
    await run?.ended;
    throw new Error('the process that asked is dead');
  };
  run = start();
  const end = await run.end;
  proxy[moment] = () => {};
  return end.signal === 'SIGKILL';
}
