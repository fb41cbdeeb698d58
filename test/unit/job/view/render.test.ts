import { describe, expect, it } from 'vitest';
import { describeDetails, describeJob } from '../../../../src/lib/job/view/describe.ts';
import type { JobFacts } from '../../../../src/lib/job/view/gather.ts';
import { renderJob, renderJobs, renderState } from '../../../../src/lib/job/view/render.ts';
import type { JobClaim, JobCompletion, JobProgress } from '../../../../src/lib/jobs/records.ts';

const now = new Date('2026-06-04T03:10:00.000Z');
const containerId = '0123456789abcdef'.repeat(4);

const claim: JobClaim = {
  ...{ source: 'claim', claimedAt: '2026-06-04T03:00:00.000Z', runId: 'run-1', jobId: 'job-1' },
  payload: {
    ...{ job_name: 'mig-0', job_type: 'mig', job_image: 'registry/mig:1', base_ref: 'main' },
    repo_url: 'https://user:hidden@git.example/repo.git?private_token=hidden#hidden',
    spec: { envs: { TOKEN: 'hidden' } },
  },
};

const progress: JobProgress = {
  ...{ phase: 'running', since: '2026-06-04T03:01:00.000Z', containerId },
  logs: {
    nextChunk: 3,
    sentBytes: 12_345,
    closed: false,
    pending: { chunkNo: 2, fromBytes: 10, toBytes: 2010 },
  },
  steps: [{ name: 'pull', at: '2026-06-04T03:00:01.000Z', ms: 4200 }],
};

const completion: JobCompletion = {
  body: { status: 'Fail', exit_code: 1, stats: { error: 'tests\nfailed' } },
  ...{ decidedAt: '2026-06-04T03:05:00.000Z', attempts: 4, lastAttemptAt: '2026-06-04T03:06:00.000Z' },
  lastError: 'cannot complete: 503',
};

const settled = (how: NonNullable<JobCompletion['settled']>['how'], answer?: string): JobCompletion => ({
  ...completion,
  settled: { at: '2026-06-04T03:07:00.000Z', how, ...(answer === undefined ? {} : { answer }) },
});

function aJob(fields: Partial<JobFacts> = {}): JobFacts {
  return {
    ...{ key: 'job-1', directory: '/state/jobs/job-1', isOpen: true, isHeld: true, damaged: [] },
    ...{ claim, progress, completion: undefined, cancel: undefined, changedAt: '2026-06-04T03:09:00.000Z' },
    ...fields,
  };
}

describe('a list of jobs', () => {
  it('has a line for each, whether open or ended', () => {
    const jobs = [
      aJob(),
      aJob({
        key: 'job-2',
        claim: { ...claim, jobId: 'job-2' },
        isOpen: false,
        completion: settled('acknowledged'),
      }),
    ];
    expect(renderJobs(jobs.map(describeJob), now)).toEqual([
      'JOB    RUN    NAME   STATE     WHEN          CONTAINER',
      'job-1  run-1  mig-0  running   for 10m       0123456789ab',
      'job-2  run-1  mig-0  Fail (1)  ended 3m ago  0123456789ab',
    ]);
  });

  it('says so where there is none', () => {
    expect(renderJobs([], now)).toEqual(['no job']);
  });

  it('shows what a damaged claim leaves: the name of its directory', () => {
    const facts = aJob({ claim: undefined, progress: undefined, isHeld: false, damaged: ['claim'] });
    expect(renderJobs([describeJob(facts)], now)[1]).toBe(
      'job-1  ?          claimed, nobody at it  for an unknown time',
    );
  });

  it.each<[string, Partial<JobFacts>]>([
    ['running', {}],
    ['running, nobody at it', { isHeld: false }],
    ['running, to be cancelled', { cancel: { at: claim.claimedAt, reason: 'x', by: 'operator' } }],
    ['claimed', { progress: undefined }],
    ['Fail, undelivered', { completion }],
    ['Fail', { completion: settled('acknowledged') }],
    ['Fail', { isOpen: false, completion: settled('already-terminal') }],
    ['Fail, refused by the server', { isOpen: false, completion: settled('refused') }],
    ['ended', { isOpen: false }],
  ])('calls it %s', (state, fields) => {
    expect(renderState(describeJob(aJob(fields)))).toBe(state);
  });
});

describe('one job', () => {
  const show = (fields: Partial<JobFacts> = {}) => renderJob(describeDetails(aJob(fields)), now);

  it('is told in words: origin, work, container, log and steps', () => {
    expect(show()).toEqual([
      'job job-1 (mig-0) of run run-1: running',
      'claimed from the server 10m ago, at 2026-06-04T03:00:00.000Z',
      'type mig, image registry/mig:1, repository https://git.example/repo.git at main',
      'running: its container runs since 9m ago',
      'a process of reeve is at it',
      `container ${containerId}`,
      'log: 3 chunks, 12.3 kB with the server, chunk 2 with 2 kB on its way',
      'STEP  BEGAN       TOOK',
      'pull  9m 59s ago  4.2s',
    ]);
  });

  it('tells how it ended, and that the server does not know yet', () => {
    const end = {
      ...{ exitCode: 137, oomKilled: true, error: 'killed' },
      ...{ startedAt: '2026-06-04T03:01:00.000Z', finishedAt: '2026-06-04T03:04:30.000Z' },
    };
    expect(show({ progress: { ...progress, phase: 'ended', end }, completion, isHeld: false })).toEqual(
      expect.arrayContaining([
        'job job-1 (mig-0) of run run-1: Fail, undelivered, nobody at it',
        'nobody is at it now: the next claim goes on with it',
        'its container ended with 137 after 3m 30s, out of memory: killed',
        'it is a Fail, exit code 1: tests | failed, decided 5m ago',
        'the server does not know yet: sent 4 times, last 4m ago: cannot complete: 503',
      ]),
    );
  });

  it.each([
    ['acknowledged', undefined, 'the server took it 3m ago, sent 4 times'],
    ['already-terminal', undefined, 'the server had it as ended already 3m ago, sent 4 times'],
    ['refused', 'no such job', 'the server refused it for good 3m ago, sent 4 times: no such job'],
  ] as const)('tells its settlement: %s', (how, answer, line) => {
    expect(show({ isOpen: false, completion: settled(how, answer) })).toContain(line);
  });

  it('tells who wanted its end and why, and which records are damaged', () => {
    const cancel = { at: '2026-06-04T03:09:30.000Z', reason: 'wrong branch', by: 'api' as const };
    expect(show({ cancel, damaged: ['completion'] })).toEqual(
      expect.arrayContaining([
        'cancelled 30s ago by the api: wrong branch',
        'its completion is damaged: what it said is not known',
      ]),
    );
  });

  it('shows nothing of what was claimed that may be secret', () => {
    expect(JSON.stringify(describeDetails(aJob()))).not.toContain('hidden');
  });

  it('has the same fields whatever is known', () => {
    const nothing = aJob({ claim: undefined, progress: undefined, damaged: ['claim'] });
    expect(Object.keys(describeDetails(nothing))).toEqual(Object.keys(describeDetails(aJob({ completion }))));
    expect(show({ claim: { ...claim, payload: 'no object' } })[0]).toBe('job job-1 of run run-1: running');
  });
});
