// Everything a tick can do, as data. apply.ts has one handler a step; the compiler demands that the table is complete.
import type { DesiredService } from '../cluster/wire.ts';
import type { FailureRecord, Replica } from './facts.ts';

/** What each step needs, by its name. */
export type StepArguments = {
  /** Have the image on disk before anything is stopped for it. */
  prepareImage: { service: DesiredService };
  /** Make one replica's container, with its port reserved first, and start it. */
  createReplica: { service: DesiredService; index: number; release: string; attempt: number };
  /** Start a container that exists and should run. */
  startReplica: { service: DesiredService; replica: Replica; release: string; attempt: number };
  /** Ask a starting replica once whether it serves. */
  probeReplica: { service: DesiredService; replica: Replica; url: string };
  /** Look whether a starting replica that cannot be probed has stayed up. */
  checkReplica: { replica: Replica };
  /** A starting replica has proven itself: it serves from now on. */
  admitReplica: { replica: Replica; release: string };
  /** A starting replica has failed: tell why, remember its release, remove it. The old ones stay. */
  abortReplica: { service: DesiredService; replica: Replica; release: string; attempt: number; why: string };
  /** Out of the routing; the wait follows once every edge's shard says so. */
  drainReplica: { replica: Replica };
  /** Every shard is without the replica: the wait begins. */
  waitForDrain: { replica: Replica; drainMs: number };
  /** No edge sends to it any more: what is left of the wait is for requests under way. */
  acknowledgeDrain: { replica: Replica; drainMs: number };
  /** `keep`: only until an attempt with another container has ended. */
  stopReplica: { replica: Replica; graceSeconds: number; afterwards: 'remove' | 'keep' };
  removeReplica: { replica: Replica };
  /** A container whose stop was only for the time of an attempt serves again. */
  resumeReplica: { replica: Replica };
  /** Forget what was recorded for a container that does not exist, and free its port. */
  forgetReplica: { name: string };
  /** Join a running container to its project's network. */
  joinNetwork: { replica: Replica };
  /** See whether the tag of a failed release has moved to another image, which may be tried at once. */
  recheckImage: { service: DesiredService; release: string; failure: FailureRecord };
  /** Count a schedule's fires from this instant on. `isDoubtful`: it was not to be believed, which is worth a warning. */
  armSchedule: { fireMs: number; schedule: string; isDoubtful: boolean };
  /** A fire that comes while a run is in progress is over. */
  skipFire: { fireMs: number; schedule: string };
  /** Record the fire, remove the run before it, start this one. */
  startRun: { service: DesiredService; fireMs: number; schedule: string; previous: readonly Replica[] };
  /** Forget the last fire of what is scheduled no more. */
  forgetSchedule: Record<string, never>;
  /** Start a one-off run. `own`: its container, made and not started. */
  startJob: { service: DesiredService; own: Replica | undefined; previous: readonly Replica[] };
};

export type StepAction = keyof StepArguments;

export type StepOf<Action extends StepAction> = {
  action: Action;
  /** `<project>/<service>` */
  key: string;
  /** Index of the replica, where there is one. */
  index?: number;
  /** Why, for a person. */
  reason: string;
  args: StepArguments[Action];
};

export type Step = { [Action in StepAction]: StepOf<Action> }[StepAction];

/** Each step in one word for people, history and `--json`. */
export const stepVerbs: Readonly<Record<StepAction, string>> = {
  prepareImage: 'prepare',
  createReplica: 'create',
  startReplica: 'start',
  probeReplica: 'probe',
  checkReplica: 'check',
  admitReplica: 'serve',
  abortReplica: 'abort',
  drainReplica: 'drain',
  waitForDrain: 'wait',
  acknowledgeDrain: 'acknowledge',
  stopReplica: 'stop',
  removeReplica: 'remove',
  resumeReplica: 'resume',
  forgetReplica: 'forget',
  joinNetwork: 'join',
  recheckImage: 'recheck',
  armSchedule: 'arm',
  skipFire: 'skip',
  startRun: 'run',
  forgetSchedule: 'forget',
  startJob: 'run',
};

/** Steps that only look: they are not told in history and change nothing. */
export const looksOnly: ReadonlySet<StepAction> = new Set<StepAction>([
  'probeReplica',
  'checkReplica',
  'recheckImage',
]);

/** Steps that keep a schedule. They come and go with time: no deploy waits for them. */
export const keepsSchedule: ReadonlySet<StepAction> = new Set<StepAction>([
  'armSchedule',
  'skipFire',
  'startRun',
  'forgetSchedule',
]);
