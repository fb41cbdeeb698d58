// How long a deploy may be held up by its notification: ten seconds for all of it, however many calls that is.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Fault } from '../../support/faulty-proxy.ts';
import { type Notified, refusedBySns, startNotified, warningsOf } from '../../support/notified.ts';
import { type ProgramEnd, startProcess } from '../../support/programs.ts';

const startedLine = 'warning: nodes may find the change at their next tick only: ';

/** A deploy to its end, and how much longer than one that tells nobody. */
async function timeDeploy(
  notified: Notified,
  spoil: (notified: Notified) => void,
): Promise<{ end: ProgramEnd; moreMs: number }> {
  const quickAt = performance.now();
  await notified.deploy(['web-1'], '--no-notify');
  const quickMs = performance.now() - quickAt;
  spoil(notified);
  const startedAt = performance.now();
  const end = await notified.deploy(['web-1']);
  return { end, moreMs: performance.now() - startedAt - quickMs };
}

/** A page of a list after which there is always another one. */
const endlessPage: Fault = {
  ...{ kind: 'answer', status: 200, headers: { 'content-type': 'text/xml' } },
  body:
    '<ListSubscriptionsByTopicResponse><ListSubscriptionsByTopicResult><Subscriptions/>' +
    '<NextToken>more</NextToken></ListSubscriptionsByTopicResult></ListSubscriptionsByTopicResponse>',
};

// Other work on the machine spoils a measurement now and then.
describe('a deploy is held up for ten seconds at most, and its warning is one line (L125), by', {
  retry: 2,
}, () => {
  it('a list that does not end, and the message is sent nevertheless', async () => {
    const notified = await startNotified(['web-1']);
    const { end, moreMs } = await timeDeploy(notified, ({ proxy }) => {
      proxy.delayMs = 100;
      proxy.fault = ({ action }) => (action === 'ListSubscriptionsByTopic' ? endlessPage : undefined);
    });
    expect([end.status, warningsOf(end)]).toEqual([
      0,
      [
        expect.stringMatching(
          `^${startedLine}cannot list the subscriptions of topic launch-pad-default: no `,
        ),
      ],
    ]);
    expect(notified.asked()['Publish']).toBe(1);
    expect(moreMs).toBeLessThan(10_500);
  });

  it('calls that each take almost as long as they may, the last of which is to be tried again later', async () => {
    const notified = await startNotified(['web-1']);
    const { end, moreMs } = await timeDeploy(notified, ({ proxy }) => {
      proxy.delayMs = 2_900;
      proxy.answerHeaders = { 'retry-after': '3600' };
      proxy.fault = ({ action }) => (action === 'Publish' ? refusedBySns(429, 'Throttled') : undefined);
    });
    expect([end.status, warningsOf(end)]).toEqual([
      0,
      [expect.stringMatching(`^${startedLine}.*no whole answer`)],
    ]);
    expect(moreMs).toBeLessThan(10_500);
  });

  it('a store that is locked for longer than that', async () => {
    const notified = await startNotified(['web-1']);
    const lock = join(notified.operator.root, 'store/.locks/store.lock');
    const { end, moreMs } = await timeDeploy(notified, ({ proxy }) => {
      proxy.fault = async ({ action }) => {
        if (action !== 'CreateTopic') return undefined;
        // Longer than a deploy waits for its topic, and not for what it has to write afterwards.
        const holder = startProcess('flock', [lock, 'sh', '-c', 'echo held; sleep 7']);
        await holder.waitFor('held');
        return undefined;
      };
    });
    expect([end.status, warningsOf(end)]).toEqual([
      0,
      [expect.stringMatching(`^${startedLine}cannot write cluster.json: no whole answer within \\S+ s`)],
    ]);
    expect(moreMs).toBeLessThan(10_500);
  });
});
