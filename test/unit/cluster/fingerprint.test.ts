import { describe, expect, it } from 'vitest';
import { decideWrite, shardFingerprint, statusFingerprint } from '../../../src/lib/cluster/fingerprint.ts';
import type { BackupStatus, JobRunStatus } from '../../../src/lib/cluster/wire.ts';
import { aNodeStatus, aServiceStatus } from '../../support/builders.ts';

const golden = 'd08eeb4a11a532815f8408cc03f211523f0ece4605fa64bb358e462b9702c482';

describe('the status fingerprint', () => {
  it('equals the golden vector (L181, L182)', () => {
    expect(statusFingerprint(aNodeStatus())).toBe(golden);
  });

  it('ignores timestamps, the host sample and the cron roll-up (L107, L114)', () => {
    const status = aNodeStatus({
      lastSeen: '2027-01-01T00:00:00.000Z',
      caddy: { managed: true, lastReloadAt: '2027-01-01T00:00:00.000Z', error: null },
      host: { cpuPercent: 12.5, memoryUsedMb: 1, memoryTotalMb: 2, sampledAt: '2027-01-01T00:00:00.000Z' },
      services: [
        aServiceStatus({
          updatedAt: '2027-01-01T00:00:00.000Z',
          cron: { lastRunAt: null, lastExitCode: null, nextRunAt: '2027-01-01T00:00:00.000Z' },
        }),
      ],
    });
    expect(statusFingerprint(status)).toBe(golden);
  });

  it('does not depend on the order of services, replicas and routes (R1)', () => {
    const replicas = [0, 1].map((index) => ({
      index,
      containerId: `c${index}`,
      hostPort: 20000 + index,
      state: 'running' as const,
      image: 'img:1',
      healthy: true,
    }));
    const services = [aServiceStatus({ replicas }), aServiceStatus({ service: 'api' })];
    const edgeRoutes = [
      { domain: 'b.example.com', upstreams: 1 },
      { domain: 'a.example.com', upstreams: 2 },
    ];
    const turned = aNodeStatus({
      services: [aServiceStatus({ service: 'api' }), aServiceStatus({ replicas: replicas.toReversed() })],
      edgeRoutes: edgeRoutes.toReversed(),
    });
    expect(statusFingerprint(turned)).toBe(statusFingerprint(aNodeStatus({ services, edgeRoutes })));
  });

  it.each([
    ['a state', { state: 'error' }],
    ['a message', { message: 'stopped' }],
    ['a count', { runningReplicas: 0 }],
    ['a backup', { backup: aBackup() }],
    ['a one-off run', { jobRun: aJobRun() }],
  ] as const)('changes with %s (L106)', (_, overrides) => {
    expect(statusFingerprint(aNodeStatus({ services: [aServiceStatus(overrides)] }))).not.toBe(golden);
  });

  it('of a one-off run ignores when it started and finished (L107)', () => {
    const before = aNodeStatus({ services: [aServiceStatus({ jobRun: aJobRun() })] });
    const after = aNodeStatus({
      services: [aServiceStatus({ jobRun: aJobRun({ startedAt: 'x', finishedAt: 'y' }) })],
    });
    expect(statusFingerprint(after)).toBe(statusFingerprint(before));
  });
});

describe('the shard fingerprint', () => {
  const backend = { domain: 'app.example.com', hostPort: 20001, healthPath: '/health' };

  it('equals the golden vector (L181, L182)', () => {
    const shard = { nodeId: 'app-1', privateIp: '10.0.1.5', backends: [backend] };
    expect(shardFingerprint(shard)).toBe('bd9bc42fa166a15f88d0a1834a08a92699827820df6d24597a5697edf5647fdb');
  });

  it('ignores updatedAt and the order of backends (L107)', () => {
    const backends = [backend, { domain: 'a.example.com', hostPort: 20002 }];
    const one = { nodeId: 'app-1', privateIp: '10.0.1.5', updatedAt: 'x', backends };
    const other = { ...one, updatedAt: 'y', backends: backends.toReversed() };
    expect(shardFingerprint(other)).toBe(shardFingerprint(one));
  });
});

describe('the decision to write', () => {
  const now = new Date('2026-06-04T03:00:30.000Z');
  const written = (lastWriteAt: string) => ({ fingerprint: 'f', lastWriteAt });

  it.each([
    ['first', 'nothing was written yet', undefined, 'f'],
    ['changed', 'the content differs', written('2026-06-04T03:00:29.000Z'), 'g'],
    ['skip', 'it was written a moment ago', written('2026-06-04T03:00:00.001Z'), 'f'],
    ['liveness', 'it was written exactly 30 s ago', written('2026-06-04T03:00:00.000Z'), 'f'],
    ['liveness', 'the last write lies in the future', written('2026-06-05T00:00:00.000Z'), 'f'],
    ['liveness', 'the last write is unreadable', written('soon'), 'f'],
  ] as const)('is %s when %s (L106, L108, L109)', (decision, _, previous, fingerprint) => {
    expect(decideWrite(previous, fingerprint, now, 30_000)).toBe(decision);
  });
});

function aBackup(): BackupStatus {
  return { lastRunAt: null, lastSuccessAt: null, lastError: 'x', nextRunAt: null, databases: [] };
}

function aJobRun(overrides: Partial<JobRunStatus> = {}): JobRunStatus {
  return {
    id: 'r1',
    requestedAt: '2026-06-04T03:00:00.000Z',
    startedAt: null,
    finishedAt: null,
    exitCode: null,
    state: 'running',
    message: 'running',
    ...overrides,
  };
}
