import { describe, expect, it } from 'vitest';
import { type JobFacts, type JobStepKind, planJob } from '../../../src/lib/job/plan.ts';

const fresh: JobFacts = {
  completion: 'none',
  phase: 'preparing',
  understood: 'container',
  container: 'none',
  isCancelled: false,
  isPrepared: false,
};

const next = (facts: Partial<JobFacts>): JobStepKind => planJob({ ...fresh, ...facts }).kind;

describe('the next step of a job', () => {
  it.each<[string, Partial<JobFacts>, JobStepKind]>([
    ['of a claim', {}, 'prepare'],
    ['once all is ready', { isPrepared: true }, 'create'],
    ['once its container is made', { phase: 'creating', container: 'created', isPrepared: true }, 'start'],
    ['once it runs', { phase: 'starting', container: 'running' }, 'follow'],
    ['once it has ended', { phase: 'ended', container: 'ended' }, 'finish'],
    ['once it is decided', { phase: 'ended', completion: 'unsettled' }, 'deliver'],
    ['once the server knows', { phase: 'ended', completion: 'settled' }, 'close'],
    ['P49: of what cannot be understood', { understood: 'refused' }, 'refuse'],
    ['of a gate that has passed without a container', { understood: 'passed' }, 'give-verdict'],
    ['of a gate that has failed without a container', { understood: 'failed' }, 'give-verdict'],
    [
      'P34: of a container of the original that runs',
      { understood: 'adopted', phase: 'running', container: 'running' },
      'follow',
    ],
    [
      'P34: of a container of the original that is gone',
      { understood: 'adopted', phase: 'running' },
      'give-up',
    ],
  ])('%s', (_, facts, kind) => {
    expect(next(facts)).toBe(kind);
  });

  it.each<[string, Partial<JobFacts>, JobStepKind]>([
    ['before a container was asked for: all over again', { phase: 'preparing' }, 'prepare'],
    ['before the container was made: all over again', { phase: 'creating' }, 'prepare'],
    ['after the container was made: it is started', { phase: 'creating', container: 'created' }, 'start'],
    ['before the start: it is started', { phase: 'starting', container: 'created' }, 'start'],
    ['after the start: it is taken up', { phase: 'starting', container: 'running' }, 'follow'],
    ['while it ran, and it still does', { phase: 'running', container: 'running' }, 'follow'],
    ['while it ran, and it has ended since', { phase: 'running', container: 'ended' }, 'follow'],
    ['R59: after the start, and the container is gone: never again', { phase: 'starting' }, 'give-up'],
    ['R59: while it ran, and the container is gone: never again', { phase: 'running' }, 'give-up'],
    ['after its end', { phase: 'ended', container: 'ended' }, 'finish'],
    ['after its end, and the container is gone', { phase: 'ended' }, 'finish'],
    ['before the delivery', { phase: 'ended', completion: 'unsettled' }, 'deliver'],
    ['before it is closed', { phase: 'ended', completion: 'settled' }, 'close'],
    ['before a refusal is delivered', { completion: 'unsettled', understood: 'refused' }, 'deliver'],
  ])('after a crash %s', (_, facts, kind) => {
    expect(next(facts)).toBe(kind);
  });

  it.each<[string, Partial<JobFacts>, JobStepKind]>([
    ['before anything', {}, 'cancel'],
    ['once all is ready', { isPrepared: true }, 'cancel'],
    ['with a container that was never started', { phase: 'creating', container: 'created' }, 'cancel'],
    ['just before the start', { phase: 'starting', container: 'created' }, 'cancel'],
    ['while it runs', { phase: 'running', container: 'running' }, 'follow'],
    ['with its container gone', { phase: 'running' }, 'cancel'],
    ['after its end', { phase: 'ended', container: 'ended' }, 'finish'],
  ])('P58: of a job that is cancelled %s', (_, facts, kind) => {
    expect(next({ ...facts, isCancelled: true })).toBe(kind);
  });
});
