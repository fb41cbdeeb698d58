// Waits until the nodes say that they have converged on what was written, or that it has failed.

import { mapBounded } from '../bounded.ts';
import { nodesPrefix, reeveKey, statusKey } from '../cluster/keys.ts';
import type { BaseContext } from '../context.ts';
import { describeError } from '../errors.ts';
import { formatDuration } from '../time.ts';
import type { NodeFailure } from './describe.ts';
import { parallel, type Target } from './gather.ts';
import { parseObject } from './json.ts';
import { type Arrival, type Awaited, judgeArrival, parseProgress } from './progress.ts';

const pollMs = 1000;

/** From so many nodes on one list, which tells who has news, is cheaper than asking all of them. */
const fewNodes = 10;

type WaitContext = Pick<BaseContext, 'clock' | 'log' | 'signal'>;

/** What did not arrive within the time, one entry a failing service or a node that is not there yet. */
export async function waitForNodes(
  ctx: WaitContext,
  target: Target,
  awaited: readonly Awaited[],
  timeoutMs: number,
): Promise<NodeFailure[]> {
  const deadline = ctx.clock.now().getTime() + timeoutMs;
  const failures: NodeFailure[] = [];
  let waiting = awaited;
  let last: Looks = { etags: new Map(), arrivals: new Map() };
  for (;;) {
    last = await lookAtAll(target, waiting, last);
    const { arrivals } = last;
    const judged = waiting.flatMap((one) => {
      const arrival = arrivals.get(one.node);
      return arrival === undefined ? [] : [{ one, arrival }];
    });
    for (const { one, arrival } of judged) failures.push(...settle(ctx, one, arrival));
    waiting = judged.filter(({ arrival }) => arrival.kind === 'waiting').map(({ one }) => one);
    if (waiting.length === 0) return failures;
    const leftMs = deadline - ctx.clock.now().getTime();
    if (leftMs <= 0 || ctx.signal.aborted) {
      const late = ctx.signal.aborted ? 'stopped waiting' : `not there after ${formatDuration(timeoutMs)}`;
      return [...failures, ...(await describeLate(target, judged, late))];
    }
    await ctx.clock.sleep(Math.min(pollMs, leftMs), ctx.signal);
  }
}

type Looks = { etags: ReadonlyMap<string, string>; arrivals: ReadonlyMap<string, Arrival> };

/** What has the etag that it had says what it said. */
async function lookAtAll(target: Target, waiting: readonly Awaited[], last: Looks): Promise<Looks> {
  const etags = waiting.length < fewNodes ? new Map<string, string>() : await listReports(target);
  const judged = await mapBounded(waiting, parallel, async (one): Promise<[string, Arrival]> => {
    const key = reeveKey(target.clusterId, one.node);
    const known = last.arrivals.get(one.node);
    const isSame = etags.has(key) && etags.get(key) === last.etags.get(key);
    if (known !== undefined && isSame) return [one.node, known];
    try {
      return [one.node, await look(target, one)];
    } catch (error) {
      // No verdict: the next look may read it.
      etags.delete(key);
      return [one.node, { kind: 'waiting', why: describeError(error) }];
    }
  });
  return { etags, arrivals: new Map(judged) };
}

/** Empty where the store cannot be listed just now: then each node is asked. */
async function listReports({ store, clusterId }: Target): Promise<Map<string, string>> {
  const entries = await store.list(nodesPrefix(clusterId)).catch(() => []);
  return new Map(entries.map(({ key, etag }) => [key, etag]));
}

async function look(target: Target, one: Awaited): Promise<Arrival> {
  return judgeArrival(parseProgress(await readText(target, reeveKey(target.clusterId, one.node))), one);
}

async function readText({ store }: Target, key: string): Promise<string | undefined> {
  return (await store.get(key))?.text;
}

function settle(ctx: WaitContext, { node }: Awaited, arrival: Arrival): NodeFailure[] {
  if (arrival.kind === 'converged') ctx.log.info(`${node}: converged`);
  if (arrival.kind !== 'failed') return [];
  return arrival.failing.map(({ project, service, message }) => ({
    node,
    message: `${project}/${service}: ${message}`,
  }));
}

/** With the node's last sign of life, so that a dead node is told from a slow one. */
async function describeLate(
  target: Target,
  judged: readonly { one: Awaited; arrival: Arrival }[],
  late: string,
): Promise<NodeFailure[]> {
  const waiting = judged.flatMap(({ one, arrival }) =>
    arrival.kind === 'waiting' ? [{ one, arrival }] : [],
  );
  return await mapBounded(waiting, parallel, async ({ one, arrival }) => {
    const status = parseObject(
      await readText(target, statusKey(target.clusterId, one.node)).catch(() => undefined),
    );
    const seen = typeof status?.['lastSeen'] === 'string' ? `last seen ${status['lastSeen']}` : 'never seen';
    return { node: one.node, message: `${late}: ${arrival.why}; ${seen}` };
  });
}
