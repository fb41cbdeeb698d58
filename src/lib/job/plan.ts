// What a job does next, from what is known of it: whatever process was killed before, and at whichever point. Pure.
import type { JobPhase } from '../jobs/records.ts';

export type JobFacts = {
  completion: 'none' | 'unsettled' | 'settled';
  phase: JobPhase;
  /** Of an understood job, what its execution is; `refused` is a claim or spec that cannot be understood. */
  understood: 'container' | 'passed' | 'failed' | 'adopted' | 'refused';
  container: 'none' | 'created' | 'running' | 'ended';
  /** Somebody has asked for its end. */
  isCancelled: boolean;
  /** Workspace and image are ready, made so by this run. */
  isPrepared: boolean;
};

export type JobStep = { kind: JobStepKind; reason: string };

export type JobStepKind =
  | 'close'
  | 'deliver'
  | 'refuse'
  | 'give-verdict'
  | 'cancel'
  | 'prepare'
  | 'create'
  | 'start'
  | 'follow'
  | 'give-up'
  | 'finish';

export function planJob(facts: JobFacts): JobStep {
  if (facts.completion === 'settled') return { kind: 'close', reason: 'the server knows how it ended' };
  if (facts.completion === 'unsettled') return { kind: 'deliver', reason: 'it has ended' };
  if (facts.phase === 'ended') return { kind: 'finish', reason: 'its container has ended' };
  if (facts.container === 'running') return { kind: 'follow', reason: 'its container runs' };
  if (facts.container === 'ended') return { kind: 'follow', reason: 'its container has ended' };
  if (facts.understood === 'refused') return { kind: 'refuse', reason: 'it cannot be understood' };
  if (facts.isCancelled) return { kind: 'cancel', reason: 'it was cancelled before its container ran' };
  if (facts.understood === 'passed' || facts.understood === 'failed') {
    return { kind: 'give-verdict', reason: 'it needs no container' };
  }
  return facts.container === 'created' ? planCreated() : planWithout(facts);
}

/** It has not run: a container that has is never `created` again. */
function planCreated(): JobStep {
  return { kind: 'start', reason: 'its container is made' };
}

function planWithout({ phase, understood, isPrepared }: JobFacts): JobStep {
  if (phase === 'starting' || phase === 'running' || understood === 'adopted') {
    return { kind: 'give-up', reason: 'its container may have run and is gone' };
  }
  if (!isPrepared) return { kind: 'prepare', reason: 'it has no container' };
  return { kind: 'create', reason: 'all is ready' };
}
