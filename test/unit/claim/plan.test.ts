import { describe, expect, it } from 'vitest';
import type { ClaimFacts, JobContainer, OpenJob } from '../../../src/lib/claim/facts.ts';
import { planClaim } from '../../../src/lib/claim/plan.ts';

const now = new Date('2026-06-04T12:00:00.000Z');

function aContainer(id: string, change: Partial<JobContainer> = {}): JobContainer {
  return { id, runId: `run-${id}`, jobId: `job-${id}`, key: `job-${id}`, state: 'running', ...change };
}

function anEnded(id: string, agoMs: number | undefined, change: Partial<JobContainer> = {}): JobContainer {
  const finishedAt = agoMs === undefined ? undefined : new Date(now.getTime() - agoMs);
  const end = { exitCode: 0, startedAt: new Date(now.getTime() - 600_000), finishedAt };
  return aContainer(id, { state: 'exited', end, ...change });
}

function aJob(key: string, change: Partial<OpenJob> = {}): OpenJob {
  return { key, isHeld: false, claim: 'whole', completion: 'none', ...change };
}

function plan(facts: Partial<ClaimFacts>): string[] {
  const whole = { containers: [], open: [], ended: new Set<string>(), ...facts };
  return planClaim(whole, now).map((step) =>
    step.kind === 'trouble'
      ? `trouble ${step.about}`
      : `${step.kind} ${'key' in step ? step.key : step.container.id}`,
  );
}

describe('the pass at the start of claim', () => {
  it('does nothing on a node without jobs', () => {
    expect(plan({})).toEqual([]);
  });

  it('P34 adopts a container that runs and is not known, P44 whatever number of them there is', () => {
    expect(plan({ containers: [aContainer('b'), aContainer('a'), aContainer('c')] })).toEqual([
      'adopt a',
      'adopt b',
      'adopt c',
    ]);
  });

  it.each(['running', 'paused', 'restarting'] as const)(
    'P34 takes a container that is %s for one that runs',
    (state) => {
      expect(plan({ containers: [aContainer('a', { state })] })).toEqual(['adopt a']);
    },
  );

  it.each(['created', 'removing'] as const)('leaves a container alone that is %s', (state) => {
    expect(plan({ containers: [aContainer('a', { state })] })).toEqual([]);
  });

  it.each([
    ['just now', 0, ['complete a']],
    ['119.999 s ago', 119_999, ['complete a']],
    ['exactly 120 s ago', 120_000, ['complete a']],
    ['120.001 s ago', 120_001, []],
    ['an hour ago', 3_600_000, []],
    ['in the future, as the clock went back', -3_600_000, ['complete a']],
  ])('P38 P39 completes what ended %s', (_, agoMs, expected) => {
    expect(plan({ containers: [anEnded('a', agoMs)] })).toEqual(expected);
  });

  it('P38 completes a dead container as one that has exited', () => {
    expect(plan({ containers: [anEnded('a', 1_000, { state: 'dead' })] })).toEqual(['complete a']);
  });

  it('P43 skips a container whose end has no time', () => {
    expect(plan({ containers: [anEnded('a', undefined), aContainer('b', { state: 'exited' })] })).toEqual([]);
  });

  it('takes containers in the order of their ids', () => {
    const containers = [anEnded('c', 1_000), aContainer('b'), anEnded('a', 2_000)];
    expect(plan({ containers })).toEqual(['adopt b', 'complete a', 'complete c']);
  });

  it('P45 tells of a container that cannot be looked at and goes on with the others', () => {
    const bad = aContainer('a', { state: 'exited', trouble: 'cannot inspect container "a"' });
    expect(plan({ containers: [bad, anEnded('b', 1_000)] })).toEqual(['trouble container a', 'complete b']);
  });

  it('takes the container that runs where a job has two', () => {
    const first = anEnded('a', 1_000, { key: 'job', jobId: 'job' });
    const second = aContainer('b', { key: 'job', jobId: 'job' });
    expect(plan({ containers: [first, second] })).toEqual(['adopt b']);
  });

  it('takes the first of two that have ended', () => {
    const containers = ['b', 'a'].map((id) => anEnded(id, 1_000, { key: 'job', jobId: 'job' }));
    expect(plan({ containers })).toEqual(['complete a']);
  });

  it('starts the process of an open job that nobody has, whatever its container does', () => {
    const containers = [aContainer('a'), anEnded('b', 1_000)];
    const open = [aJob('job-b'), aJob('job-a'), aJob('job-c')];
    expect(plan({ containers, open })).toEqual(['start job-a', 'start job-b', 'start job-c']);
  });

  it('leaves an open job to the process that has it', () => {
    const open = [aJob('job-a', { isHeld: true, completion: 'undelivered' })];
    expect(plan({ containers: [aContainer('a')], open })).toEqual([]);
  });

  it('R30 delivers an end that is on disk, however old it is, P34 after all that runs has been taken up', () => {
    const open = [
      aJob('job-z', { completion: 'undelivered' }),
      aJob('job-x', { claim: 'lost' }),
      aJob('job-y'),
    ];
    const containers = [aContainer('a'), anEnded('c', 1_000), aContainer('x', { key: 'job-x' })];
    expect(plan({ containers, open })).toEqual([
      'adopt a',
      'restore job-x',
      'start job-x',
      'start job-y',
      'deliver job-z',
      'complete c',
    ]);
  });

  it('lets the process of a job close what has been delivered', () => {
    expect(plan({ open: [aJob('job-a', { completion: 'settled' })] })).toEqual(['start job-a']);
  });

  it('R32 rebuilds a lost claim from the labels of its container', () => {
    const facts = { containers: [aContainer('a')], open: [aJob('job-a', { claim: 'lost' })] };
    expect(plan(facts)).toEqual(['restore job-a', 'start job-a']);
  });

  it('R32 ends a job whose claim is lost and that has no container', () => {
    expect(plan({ open: [aJob('job-a', { claim: 'lost' })] })).toEqual(['give-up job-a']);
  });

  it('R32 tells of records that it cannot use and goes on with the others', () => {
    const open = [aJob('job-a', { trouble: 'it is version 9' }), aJob('job-b')];
    expect(plan({ open })).toEqual(['start job-b', 'trouble job job-a']);
  });

  it('removes the container of a job that has ended', () => {
    const ended = new Set(['job-a', 'job-b']);
    expect(plan({ containers: [anEnded('a', 1_000), aContainer('b')], ended })).toEqual([
      'remove a',
      'remove b',
    ]);
  });
});
