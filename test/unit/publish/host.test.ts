import { describe, expect, it } from 'vitest';
import type { HostSample } from '../../../src/lib/cluster/wire.ts';
import { chooseHost, withHost } from '../../../src/lib/publish/host.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { aNodeStatus } from '../../support/builders.ts';

const now = new Date();
const ctx = { clock: { now: () => now, sleep: () => Promise.reject(new Error('it waits')) }, log: silentLog };
const cpu = { busy: 1, total: 2 };

const sample = (ageMs: number): HostSample => ({
  cpuPercent: 12.5,
  memoryUsedMb: 10,
  memoryTotalMb: 20,
  sampledAt: new Date(now.getTime() - ageMs).toISOString(),
});

describe('the host sample of a status', () => {
  it('is the last one while that is younger than a minute (L112)', async () => {
    const host = sample(59_999);
    expect(await chooseHost(ctx, { body: aNodeStatus({ host }), cpu })).toEqual({ host, cpu });
    expect(await chooseHost(ctx, { body: aNodeStatus({ host }) })).toEqual({ host });
  });

  it.each([
    ['old', sample(60_000)],
    ['from the future', sample(-1000)],
    ['absent', null],
  ])('is a new one, for which nobody waits, where the last one is %s (L115)', async (_, host) => {
    const chosen = await chooseHost(ctx, { body: aNodeStatus({ host }), cpu });
    expect(chosen.host?.sampledAt).toBe(now.toISOString());
    expect(chosen.cpu?.total).toBeGreaterThan(2);
  });

  it('is the share since boot in the first status of all', async () => {
    const { host } = await chooseHost(ctx, undefined);
    expect(host?.cpuPercent).toBeGreaterThanOrEqual(0);
    expect(host?.cpuPercent).toBeLessThanOrEqual(100);
  });

  it('replaces the one that the body had, or goes', () => {
    const status = aNodeStatus({ host: sample(1) });
    expect(withHost(status, sample(2)).host).toEqual(sample(2));
    expect(withHost(status, undefined)).toEqual(aNodeStatus());
  });
});
