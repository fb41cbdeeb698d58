import { describe, expect, test } from 'vitest';
import {
  buildCompletion,
  buildFailure,
  buildReplayCompletion,
  type JobOutcome,
  toTerminalStatus,
} from '../../../src/lib/ploy/completion.ts';
import { endpoints } from '../../../src/lib/ploy/endpoints.ts';

const outcome = (more: Partial<JobOutcome> = {}): JobOutcome => ({
  ...{ jobType: 'mig', exitCode: 0, isCancelled: false, durationMs: 12.4 },
  ...more,
});

describe('a status', () => {
  test.each([
    [0, 'Success', 0],
    [1, 'Fail', 1],
    [2, 'Error', 2],
    [137, 'Error', 137],
    [-1, 'Error', -1],
    [4_294_967_295, 'Error', -1],
    [undefined, 'Error', -1],
    [Number.NaN, 'Error', -1],
    [1e300, 'Error', -1],
  ])('follows from exit code %s alone: P57, P59', (exitCode, status, code) => {
    expect(toTerminalStatus({ exitCode, isCancelled: false })).toEqual({ status, exit_code: code });
  });

  test.each([0, 1, 137, undefined])(
    'of a cancelled job has no exit code, though it was %s: P58',
    (exitCode) => {
      expect(toTerminalStatus({ exitCode, isCancelled: true })).toEqual({ status: 'Cancelled' });
    },
  );
});

describe('a completion', () => {
  test('has what is known, and leaves away what is not: P51', () => {
    expect(buildCompletion(outcome())).toEqual({
      ...{ status: 'Success', exit_code: 0, stats: { exit_code: 0, duration_ms: 12 } },
    });
    const whole = outcome({
      ...{ metadata: { a: 'b' }, repoShaOut: 'c'.repeat(40), timings: { execution_duration_ms: 1.6 } },
      resources: { cpu_consumed_ns: -1, disk_consumed_bytes: 2, mem_consumed_bytes: Number.NaN },
    });
    expect(buildCompletion(whole)).toEqual({
      ...{ status: 'Success', exit_code: 0, repo_sha_out: 'c'.repeat(40) },
      stats: {
        ...{ exit_code: 0, duration_ms: 12, metadata: { a: 'b' }, timings: { execution_duration_ms: 2 } },
        job_resources: { cpu_consumed_ns: 0, disk_consumed_bytes: 2, mem_consumed_bytes: 0 },
      },
    });
  });

  test('of a gate says whether it has passed', () => {
    const gate = (exitCode: number) => buildCompletion(outcome({ jobType: 'pre_gate', exitCode })).stats;
    expect(gate(0)).toMatchObject({ gate: { passed: true, duration_ms: 12 }, job_meta: { kind: 'gate' } });
    expect(gate(1)).toMatchObject({ gate: { passed: false, duration_ms: 12 } });
  });

  test('of a job whose results were lost is an error, though it ended well: P59', () => {
    expect(buildCompletion(outcome({ error: 'no diff', repoShaOut: 'c'.repeat(40) }))).toEqual({
      ...{ status: 'Error', exit_code: -1, stats: { exit_code: -1, duration_ms: 12, error: 'no diff' } },
    });
    expect(buildCompletion(outcome({ error: 'no diff', exitCode: 1 }))).toMatchObject({
      status: 'Fail',
      exit_code: 1,
    });
  });

  test('of a cancelled job has no exit code anywhere: P58', () => {
    const body = buildCompletion(outcome({ isCancelled: true, exitCode: 137, durationMs: -5, metadata: {} }));
    expect(body).toEqual({ status: 'Cancelled', stats: { duration_ms: 0 } });
  });

  test('of a job without a container says why, in no more than the server takes: P59', () => {
    expect(buildFailure({ error: 'no image', durationMs: 3 })).toEqual({
      ...{ status: 'Error', exit_code: -1, stats: { duration_ms: 3, error: 'no image' } },
    });
    expect(buildFailure({ error: 'x', durationMs: 3, isCancelled: true }).status).toBe('Cancelled');
    expect(buildFailure({ error: 'x'.repeat(1 << 21), durationMs: 3 }).stats?.error?.length).toBeLessThan(
      17_000,
    );
  });

  test('of a container that ended unseen says where it is from: P38', () => {
    const about = { containerId: 'c1', exitCode: 1, startedAt: '2026-01-01T00:00:00Z' };
    expect(buildReplayCompletion({ ...about, finishedAt: '2026-01-01T00:00:02.5Z' })).toEqual({
      ...{ status: 'Fail', exit_code: 1 },
      stats: {
        ...{ exit_code: 1, duration_ms: 2500 },
        metadata: { source: 'startup_reconcile', container_id: 'c1' },
      },
    });
    expect(buildReplayCompletion({ ...about, startedAt: undefined }).stats?.duration_ms).toBe(0);
  });
});

test.each([
  ['../a?b#c', '..%2Fa%3Fb%23c'],
  ['..', '%EF%BF%BD%EF%BF%BD'],
  ['.', '%EF%BF%BD'],
  ['a\ud800', 'a%EF%BF%BD'],
  ['\u{1f600}\0', '%F0%9F%98%80%00'],
])('an id never leaves its place in a path: %j', (id, part) => {
  const paths = [
    ...[endpoints.claim, endpoints.heartbeat, endpoints.diagnostics, endpoints.logs, endpoints.events],
    ...[endpoints.jobStatus, endpoints.complete, endpoints.image, endpoints.snapshot, endpoints.specBundle],
  ].map((build) => build(id));
  for (const path of [...paths, endpoints.diff(id, id), endpoints.artifact(id, id)]) {
    expect(new URL(path, 'http://p').pathname).toBe(path);
    expect(path.split('/')).toContain(part);
  }
  expect(endpoints.bootstrap).toBe('/v1/pki/bootstrap');
});
