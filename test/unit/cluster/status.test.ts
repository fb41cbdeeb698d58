import { describe, expect, it } from 'vitest';
import {
  buildFailedStatus,
  buildNodeStatus,
  buildServiceStatus,
  type ReplicaView,
  serviceStateOf,
} from '../../../src/lib/cluster/status.ts';
import type { CronStatus } from '../../../src/lib/cluster/wire.ts';
import { aService, aServiceStatus } from '../../support/builders.ts';

const now = new Date('2026-06-04T03:00:00.000Z');

describe('the state of a container', () => {
  it.each([
    ['running', 'running'],
    ['exited', 'stopped'],
    ['dead', 'stopped'],
    ['created', 'starting'],
    ['restarting', 'starting'],
    ['paused', 'pending'],
    ['removing', 'pending'],
  ] as const)('%s is %s', (engine, state) => {
    expect(serviceStateOf(engine)).toBe(state);
  });
});

describe('the status of a service', () => {
  it('whose replicas all run is running, with every field filled in', () => {
    const service = aService({ image: 'img:1', replicas: 2 });
    const replicas = [aView(1, { hostPort: undefined }), aView(0)];
    expect(buildServiceStatus({ service, replicas }, now)).toEqual({
      project: 'blog',
      service: 'web',
      image: 'img:1',
      state: 'running',
      message: 'running',
      containerId: 'c0',
      desiredReplicas: 2,
      runningReplicas: 2,
      replicas: [
        { index: 0, containerId: 'c0', hostPort: 20000, state: 'running', image: 'img:1', healthy: true },
        { index: 1, containerId: 'c1', hostPort: null, state: 'running', image: 'img:1', healthy: true },
      ],
      updatedAt: '2026-06-04T03:00:00.000Z',
    });
  });

  it.each([
    ['none', 1, [], {}, 'pending', 'pending'],
    ['fewer than wanted', 2, [aView(0)], {}, 'starting', 'starting'],
    ['more than wanted', 1, [aView(0), aView(1)], {}, 'running', 'running'],
    [
      'stopped ones',
      2,
      [aView(0, { state: 'exited' }), aView(1, { state: 'created' })],
      {},
      'stopped',
      'stopped',
    ],
    ['a restarting one', 1, [aView(0, { state: 'restarting' })], {}, 'starting', 'starting'],
    ['running ones and an error', 1, [aView(0)], { error: 'no such image' }, 'error', 'no such image'],
    ['none yet while the image is pulled', 1, [], { phase: 'pulling' }, 'pulling', 'pulling'],
    ['one that is being stopped', 1, [aView(0)], { phase: 'stopping' }, 'stopping', 'stopping'],
  ] as const)('with %s', (_, wanted, replicas, more, state, message) => {
    const status = buildServiceStatus({ service: aService({ replicas: wanted }), replicas, ...more }, now);
    expect({ state: status.state, message: status.message }).toEqual({ state, message });
  });
});

describe('the status of a schedule', () => {
  const service = aService({ cron: '0 3 * * *' });
  const next = '2026-06-05T03:00:00.000Z';

  it.each([
    ['armed', [], aCron(null), 'scheduled, next run 2026-06-05T03:00:00.000Z'],
    ['in progress', [aView(0)], aCron(0), 'run in progress, next run 2026-06-05T03:00:00.000Z'],
    ['after a good run', [aView(0, { state: 'exited' })], aCron(0), `last run ok, next run ${next}`],
    [
      'after a failed run',
      [aView(0, { state: 'exited' })],
      aCron(3),
      `last run failed (exit 3), next run ${next}`,
    ],
    ['that never comes due', [], { ...aCron(null), nextRunAt: null }, 'scheduled'],
    ['without a roll-up', [], undefined, 'scheduled'],
  ] as const)('%s is running (L66, L67, L68, L69)', (_, replicas, cron, message) => {
    const status = buildServiceStatus({ service, replicas, cron }, now);
    expect({ state: status.state, message: status.message, cron: status.cron }).toEqual({
      state: 'running',
      message,
      cron,
    });
  });

  it('is error only when the agent failed (L68)', () => {
    const status = buildServiceStatus({ service, replicas: [], cron: aCron(0), error: 'pull failed' }, now);
    expect([status.state, status.message]).toEqual(['error', 'pull failed']);
  });
});

describe('the status of a one-off run', () => {
  const service = aService({ jobRun: { id: 'r2', requestedAt: '2026-06-04T02:59:00.000Z' } });
  const requestedAt = '2026-06-04T02:59:00.000Z';
  const finishedAt = '2026-06-04T02:59:30.000Z';
  const pending = {
    id: 'r2',
    requestedAt,
    startedAt: null,
    finishedAt: null,
    exitCode: null,
    state: 'pending',
  };

  it.each([
    ['not begun', [], 'pending', { ...pending, message: 'pending' }],
    ['behind another run', [aView(0, { jobRun: 'r1' })], 'pending', { ...pending, message: 'waiting' }],
    ['running', [aView(0, { jobRun: 'r2' })], 'running', aJob('running', null, null, 'running')],
    ['done', [anEnd(0)], 'stopped', aJob('succeeded', 0, finishedAt, 'succeeded')],
    ['failed', [anEnd(7)], 'error', aJob('failed', 7, finishedAt, 'failed (exit 7)')],
    ['ended unseen', [anEnd(undefined)], 'error', aJob('failed', null, finishedAt, 'failed (exit unknown)')],
  ] as const)('%s', (_, replicas, state, jobRun) => {
    const status = buildServiceStatus({ service, replicas }, now);
    expect({ state: status.state, jobRun: status.jobRun, desired: status.desiredReplicas }).toEqual({
      state,
      jobRun,
      desired: 0,
    });
  });

  function aJob(state: string, exitCode: number | null, finished: string | null, message: string): unknown {
    return {
      id: 'r2',
      requestedAt,
      startedAt: requestedAt,
      finishedAt: finished,
      exitCode,
      state,
      message,
    };
  }

  function anEnd(exitCode: number | undefined): ReplicaView {
    return aView(0, { jobRun: 'r2', state: 'exited', exitCode, finishedAt });
  }
});

describe('the status of a node', () => {
  const facts = { nodeId: 'web-1', agentId: 'web-1', agentVersion: '1.0.0' };

  it('lists services by key and has the defaults of a node without edge', () => {
    const services = [aServiceStatus(), aServiceStatus({ project: 'app' })];
    expect(buildNodeStatus({ ...facts, services }, now)).toEqual({
      nodeId: 'web-1',
      agentId: 'web-1',
      lastSeen: '2026-06-04T03:00:00.000Z',
      agentVersion: '1.0.0',
      services: [aServiceStatus({ project: 'app' }), aServiceStatus()],
      caddy: { managed: false, lastReloadAt: null, error: null },
      edgeRoutes: [],
    });
  });

  it('of a tick that failed has no services and the reason where readers look for it', () => {
    const host = { cpuPercent: 1, memoryUsedMb: 2, memoryTotalMb: 3, sampledAt: now.toISOString() };
    expect(buildFailedStatus({ ...facts, host }, 'cannot reach docker', now)).toEqual({
      nodeId: 'web-1',
      agentId: 'web-1',
      lastSeen: '2026-06-04T03:00:00.000Z',
      agentVersion: '1.0.0',
      services: [],
      caddy: { managed: false, lastReloadAt: null, error: 'cannot reach docker' },
      edgeRoutes: [],
      host,
    });
  });
});

function aView(index: number, overrides: Partial<ReplicaView> = {}): ReplicaView {
  return {
    index,
    containerId: `c${index}`,
    hostPort: 20000 + index,
    image: 'img:1',
    state: 'running',
    ...overrides,
  };
}

function aCron(lastExitCode: number | null): CronStatus {
  return {
    lastRunAt: lastExitCode === null ? null : '2026-06-04T03:00:00.000Z',
    lastExitCode,
    nextRunAt: '2026-06-05T03:00:00.000Z',
  };
}
