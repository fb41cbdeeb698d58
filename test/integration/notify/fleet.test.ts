// The telling of a fleet, without the writes before it.
import { describe, expect, it, vi } from 'vitest';
import { notifyNodes } from '../../../src/lib/notify/run.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { cloudRegion } from '../../support/cloud.ts';
import { startNotified } from '../../support/notified.ts';

// Other work on the machine spoils a measurement now and then.
describe('a fleet of 1,000', { retry: 2 }, () => {
  it('is told with few requests at once, and from then on without changing anything', async () => {
    const notified = await startNotified([]);
    const { proxy, asked, operator } = notified;
    for (const [name, value] of Object.entries(notified.cloud.env)) vi.stubEnv(name, value);
    const warnings: string[] = [];
    const log = { ...silentLog, warning: (message: string) => void warnings.push(message) };
    const ctx = { clock: systemClock, log, signal: new AbortController().signal };
    const store = `file://${operator.root}/store`;
    const cluster = { clusterId: 'default', store, region: cloudRegion, endpoint: proxy.endpoint };
    const nodes = Array.from({ length: 1000 }, (_, index) => `n-${index}`);
    proxy.delayMs = 50;
    const tell = async (): Promise<number> => {
      const startedAt = performance.now();
      await notifyNodes(ctx, { cluster, nodes });
      return performance.now() - startedAt;
    };

    const firstMs = await tell();
    expect(asked()).toMatchObject({ CreateQueue: 1000, Subscribe: 1000, Publish: 1 });
    const nextMs = await tell();
    const { ListSubscriptionsByTopic, ...rest } = asked();
    expect(rest).toEqual({ GetTopicAttributes: 1, ListQueues: 1, GetQueueAttributes: 1000, Publish: 1 });
    expect(ListSubscriptionsByTopic).toBeGreaterThan(0);
    expect(warnings).toEqual([]);
    expect(proxy.mostAtOnce).toBeLessThanOrEqual(50);
    expect(nextMs).toBeLessThan(10_000);
    const seconds = (ms: number): string => (ms / 1000).toFixed(1);
    console.log(
      `figure: 1,000 nodes behind 50 ms were told in ${seconds(firstMs)} s the first time, in ${seconds(nextMs)} s from then on; ` +
        `${proxy.mostAtOnce} requests at once`,
    );
  });
});
