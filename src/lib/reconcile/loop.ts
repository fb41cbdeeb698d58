// The loop of one activation: look, publish, plan the next steps only, start them, look again. It never sleeps for more
// than a second, so that a wake, another service or a fix for a broken release never waits behind a drain.
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describeError } from '../errors.ts';
import { appendHistory } from '../state/history.ts';
import { waitForReport } from './applied.ts';
import { createBackground } from './background.ts';
import { wakeBackups } from './backups.ts';
import type { Facts, PlanOptions } from './facts.ts';
import { gatherFacts, readDesired } from './gather.ts';
import { maxFaultsInARow, performTurn } from './perform.ts';
import { type Deferred, type Plan, planReconcile } from './plan.ts';
import type { Wait } from './plan-replica.ts';
import type { ServicePlan } from './plan-service.ts';
import { listTroubles, publishLook, publishRoutes, type Told } from './publish-look.ts';
import type { Trouble } from './report-status.ts';
import type { Background, Session } from './session.ts';
import { looksOnly } from './steps.ts';

export type LoopResult = {
  facts: Facts;
  troubles: readonly Trouble[];
  deferred: readonly Deferred[];
  /** Ended by time or signal with work left. */
  unfinished: boolean;
};

export type LoopOptions = PlanOptions & {
  /** Called while work is under way, so that others can tell a busy run from a stuck one. */
  beat(doing: string): Promise<void>;
};

/** One activation goes on for this long at most; the next one continues from the record. In milliseconds. */
export const activationMs = 10 * 60_000;
const longestPauseMs = 1000;
/** The store is given this many looks in a row to take the routing. */
const maxPublishFaults = 3;

export async function runLoop(session: Session, options: LoopOptions): Promise<LoopResult> {
  const loop: LoopState = {
    startedAt: session.ctx.clock.now(),
    turns: createBackground(),
    busyLocks: new Map(),
    publishFaults: 0,
    told: { reported: 0, edgeErrors: [] },
    desiredReadAt: undefined,
    wokenBackups: '',
  };
  try {
    return await lookUntilOver(session, loop, options);
  } finally {
    // After a look that failed, too: what has begun is settled and told before the lock is given back.
    await loop.turns.all();
    await saveEvents(session).catch((error: unknown) => {
      session.ctx.log.warning(`cannot record what was done: ${describeError(error)}`);
    });
    session.ctx.log.progress(undefined);
  }
}

async function lookUntilOver(session: Session, loop: LoopState, options: LoopOptions): Promise<LoopResult> {
  for (;;) {
    const look = await lookOnce(session, loop, options);
    await saveEvents(session);
    if (look.over) {
      const deferred = [
        ...look.plan.deferred,
        ...[...loop.busyLocks].map(([key, reason]) => ({ key, reason })),
      ];
      return { facts: look.facts, troubles: look.troubles, deferred, unfinished: look.pending };
    }
    session.ctx.log.progress(look.doing);
    await options.beat(look.doing);
    if (settledOf(session, loop) === look.settledBefore) await pause(session, loop.turns, look);
  }
}

type LoopState = {
  startedAt: Date;
  turns: Background;
  /** Services whose lock somebody else holds: left alone for the rest of this activation. */
  busyLocks: Map<string, string>;
  publishFaults: number;
  told: Told;
  desiredReadAt: Date | undefined;
  /** The due backups that were woken for last. */
  wokenBackups: string;
};

type Look = {
  facts: Facts;
  plan: Plan;
  troubles: readonly Trouble[];
  over: boolean;
  pending: boolean;
  doing: string;
  dueAt: readonly Date[];
  /** Turns and stops that had settled when it began: more by now means that there is something new to see. */
  settledBefore: number;
};

async function lookOnce(session: Session, loop: LoopState, options: LoopOptions): Promise<Look> {
  const settledBefore = settledOf(session, loop);
  await refreshDesired(session, loop);
  const gathered = await gatherFacts(session);
  const { published } = await publishRoutes(session, loop.told, gathered, options);
  loop.publishFaults = published ? 0 : loop.publishFaults + 1;
  const facts = { ...gathered, routingPublished: published, shards: session.shards.value.edges };
  loop.wokenBackups = await wakeBackups(session, facts, loop.wokenBackups);
  const plan = planReconcile(facts, options);
  const stopping = isStopping(session, loop, facts.now);
  const due = stopping ? [] : dueTurns(session, plan, loop);
  for (const turn of due) loop.turns.add(takeTurn(session, turn, loop.busyLocks));
  clearOldFaults(session, plan);
  const troubles = listTroubles(session, loop.told, plan);
  const unpublished = await publishLook(session, loop.told, { facts, plan, troubles, options });
  const waits = [...plan.services.flatMap((service) => service.waits), ...restingUntil(session, plan)];
  // What ended during this look has not been looked at since: the loop must not end on it.
  const turning = loop.turns.size > 0 || facts.busy.size > 0;
  const pending = turning || session.background.size > 0 || due.length > 0 || waits.length > 0;
  const over = stopping ? !turning : !pending || loop.publishFaults >= maxPublishFaults;
  const doing = waits[0] === undefined ? (due[0]?.key ?? 'steps under way') : `waiting for ${waits[0].why}`;
  const dueAt = waits.map(({ until }) => until);
  const told = [...troubles, ...unpublished];
  return { facts, plan, troubles: told, over, pending, doing, dueAt, settledBefore };
}

function settledOf(session: Session, loop: LoopState): number {
  return loop.turns.settled + session.background.settled;
}

async function refreshDesired(session: Session, loop: LoopState): Promise<void> {
  const now = session.ctx.clock.now();
  const ageMs = loop.desiredReadAt === undefined ? Infinity : now.getTime() - loop.desiredReadAt.getTime();
  const old = ageMs < 0 || ageMs >= session.cluster.intervals.tickMs;
  if (!(await takeWake(session)) && !old) return;
  await readDesired(session);
  loop.desiredReadAt = now;
}

function isStopping(session: Session, loop: LoopState, now: Date): boolean {
  // A clock that was set back must not make it endless.
  const ageMs = Math.abs(now.getTime() - loop.startedAt.getTime());
  return session.ctx.signal.aborted || ageMs > activationMs;
}

/** Services whose steps start now: looks always, changes as far as the bound allows. */
function dueTurns(session: Session, plan: Plan, loop: LoopState): ServicePlan[] {
  const ready = plan.services.filter(
    (turn) => turn.steps.length > 0 && restOf(session, turn) === undefined && !loop.busyLocks.has(turn.key),
  );
  const looks = ready.filter(({ steps }) => steps.every((step) => looksOnly.has(step.action)));
  const changes = ready.filter((turn) => !looks.includes(turn));
  const room = Math.max(0, session.cluster.docker.parallel - loop.turns.size);
  return [...looks, ...changes.slice(0, room)];
}

/** How a failed service's turn is put off: for a moment, or to the next activation. */
function restOf(session: Session, turn: ServicePlan): 'over' | Date | undefined {
  const fault = session.faults.get(turn.key);
  if (fault === undefined) return undefined;
  if (fault.inARow >= maxFaultsInARow) return 'over';
  return session.ctx.clock.now() < fault.notBefore ? fault.notBefore : undefined;
}

function restingUntil(session: Session, plan: Plan): Wait[] {
  return plan.services.flatMap((turn) => {
    const rest = turn.steps.length === 0 ? undefined : restOf(session, turn);
    return rest instanceof Date ? [{ until: rest, why: `another try of ${turn.key}` }] : [];
  });
}

async function takeTurn(session: Session, turn: ServicePlan, busyLocks: Map<string, string>): Promise<void> {
  const busy = await performTurn(session, turn);
  if (busy !== undefined) busyLocks.set(turn.key, busy);
}

/** A service with nothing left to do has got over its trouble. */
function clearOldFaults(session: Session, plan: Plan): void {
  for (const { key, steps, waits, problem } of plan.services) {
    if (steps.length === 0 && waits.length === 0 && problem === undefined) session.faults.delete(key);
  }
}

async function saveEvents(session: Session): Promise<void> {
  const events = [...session.events];
  await appendHistory(session.ctx.paths, events);
  session.events.splice(0, events.length);
}

/** True if somebody has asked for a look; the request is consumed before the world is read. */
async function takeWake(session: Session): Promise<boolean> {
  const path = join(session.ctx.paths.wakeDir, 'reconcile');
  const present = await stat(path).then(
    () => true,
    () => false,
  );
  if (present) await rm(path, { force: true });
  return present;
}

/** Until a turn or a stop settles, an edge that a drain waits for reports, something is due, or a second has passed. */
async function pause(session: Session, turns: Background, { facts, dueAt }: Look): Promise<void> {
  const { ctx } = session;
  const now = ctx.clock.now().getTime();
  const nextMs = Math.min(longestPauseMs, ...dueAt.map((until) => until.getTime() - now));
  const timer = new AbortController();
  const woken = AbortSignal.any([ctx.signal, timer.signal]);
  await Promise.race([
    turns.next(),
    session.background.next(),
    waitForReport(session, facts, woken),
    ctx.clock.sleep(Math.max(1, nextMs), woken),
  ]);
  timer.abort();
}
