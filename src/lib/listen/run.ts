// `reeve listen`: long polls of this node's own queues for a window, so that a deploy is followed within milliseconds. It makes
// no queue and subscribes to nothing: deploys do that, and until then ticks find every change by themselves.
import { cloudPlaceOf } from '../aws/settings.ts';
import { queueName } from '../cluster/notification.ts';
import { readInvocation } from '../config/environment.ts';
import { type NodeConfig, requireNode } from '../config/rules.ts';
import type { BaseContext, Context } from '../context.ts';
import { ConfigError, UnavailableError } from '../errors.ts';
import { withLock } from '../lock/with-locks.ts';
import type { Outcome } from '../outcome.ts';
import type { Wakeable } from '../publish/wake.ts';
import { recordRun } from '../state/record-run.ts';
import { listenToQueue, type Pace, type QueueReport } from './queue.ts';
import { openQueues } from './queues.ts';

export type ListenOptions = { windowMs: number; waitMs: number; loadContext(): Promise<Context> };

const pace: Pace = { pollSeconds: 20, emptyMs: 1_000, missingMs: 30_000, failureMs: 5_000 };
/** What an answer may take beyond the wait that was asked for. */
const answerMs = 6_000;

/** The timer starts the next window as soon as one has ended: one that cannot even begin must not spin. */
const shortestMs = 30_000;

export async function runListen(base: BaseContext, options: ListenOptions): Promise<Outcome> {
  const startedAtMs = performance.now();
  try {
    return await listen(await options.loadContext(), options);
  } finally {
    const leftMs = Math.min(shortestMs, options.windowMs) - (performance.now() - startedAtMs);
    if (readInvocation().unit && leftMs > 0) await base.clock.sleep(leftMs, base.signal);
  }
}

async function listen(ctx: Context, { windowMs, waitMs }: ListenOptions): Promise<Outcome> {
  const node = requireNode(ctx.config);
  if (node.notify === 'none') {
    throw new ConfigError(
      `cannot listen: cluster.notify is none in ${ctx.config.file ?? 'the configuration'}`,
    );
  }
  if (node.once) return { outcome: 'nothing-to-do', text: ['LAUNCHPAD_ONCE is set: nobody listens'] };
  const ears = findEars(node);
  const now = ctx.clock.now();
  const step = {
    name: 'window',
    startedAt: now.toISOString(),
    deadlineAt: new Date(now.getTime() + windowMs + 2 * answerMs).toISOString(),
  };
  const work = async (): Promise<Outcome> => {
    const window = { untilMs: performance.now() + windowMs, pace };
    const queues = await openQueues(cloudPlaceOf(node), { signal: ctx.signal, deadlineMs: answerMs });
    try {
      const listening = ears.map((ear) => listenToQueue(ctx, queues, { ...ear, window }));
      return renderReports(await Promise.all(listening));
    } finally {
      queues.client.destroy();
    }
  };
  return await withLock(ctx, 'listen', () => recordRun(ctx, 'listen', work, { step }), { waitMs });
}

/** On one box the edge has a queue of its own. */
function findEars(node: NodeConfig): { name: string; concern: Wakeable }[] {
  const nameOf = (id: string): string => queueName(node.clusterId, id);
  return node.roles.map((role) =>
    role === 'app'
      ? { name: nameOf(node.nodeId), concern: 'reconcile' }
      : { name: nameOf(node.edgeId ?? node.nodeId), concern: 'edge' },
  );
}

/** Throws UnavailableError for a queue that could not be heard at the end: whoever watches the units has to know. */
function renderReports(reports: readonly QueueReport[]): Outcome {
  const troubles = reports.flatMap(({ trouble }) => trouble ?? []);
  if (troubles.length > 0) throw new UnavailableError(troubles.join('; '));
  const messages = reports.reduce((sum, report) => sum + report.messages, 0);
  return {
    outcome: messages > 0 ? 'done' : 'nothing-to-do',
    text: reports.map(describeReport),
    data: { queues: reports.map(({ trouble: _, ...report }) => report) },
  };
}

function describeReport({ queue, messages, missing }: QueueReport): string {
  if (missing) return `queue ${queue} is not there yet`;
  return `queue ${queue}: ${messages === 1 ? '1 message' : `${messages} messages`}`;
}
