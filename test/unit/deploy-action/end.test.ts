import { describe, expect, it } from 'vitest';
import {
  maxLastLineLength,
  maxTailBytes,
  renderTail,
  toActionEnd,
} from '../../../src/lib/deploy-action/end.ts';
import { renderRun, toEvent } from '../../../src/lib/deploy-action/render.ts';
import { buildDeployArgs } from '../../../src/lib/deploy-runner/script.ts';
import type { CommandEnd } from '../../../src/lib/runner/run.ts';

const startedAt = '2026-06-04T03:00:00.000Z';
const now = new Date('2026-06-04T03:00:12.000Z');
const times = { startedAt, endedAt: now.toISOString() };
const output = { bytes: new Uint8Array(), isCut: false };

describe('the end of a deploy', () => {
  it.each<[string, Omit<CommandEnd, 'output'>, object]>([
    ['exit 0', { kind: 'exited', code: 0 } as never, { outcome: 'succeeded', exitCode: 0 }],
    [
      'exit 1',
      { kind: 'exited', code: 1 } as never,
      { outcome: 'failed', exitCode: 1, reason: 'exit status 1 (preflight)' },
    ],
    [
      'exit 2',
      { kind: 'exited', code: 2 } as never,
      { outcome: 'failed', exitCode: 2, reason: 'exit status 2 (gate)' },
    ],
    [
      'exit 3',
      { kind: 'exited', code: 3 } as never,
      { outcome: 'failed', exitCode: 3, reason: 'exit status 3 (execute)' },
    ],
    [
      'exit 4',
      { kind: 'exited', code: 4 } as never,
      { outcome: 'failed', exitCode: 4, reason: 'exit status 4 (verify)' },
    ],
    [
      'exit 5',
      { kind: 'exited', code: 5 } as never,
      { outcome: 'failed', exitCode: 5, reason: 'exit status 5 (sudo hand-off)' },
    ],
    [
      'exit 127',
      { kind: 'exited', code: 127 } as never,
      { outcome: 'failed', exitCode: 127, reason: 'exit status 127' },
    ],
    [
      'a signal',
      { kind: 'signalled', signal: 'SIGKILL' } as never,
      { outcome: 'failed', reason: 'ended by SIGKILL' },
    ],
    ['the deadline (D41)', { kind: 'deadline' }, { outcome: 'failed', reason: 'timeout: no end within 10m' }],
    ['a stop', { kind: 'cancelled' }, { outcome: 'failed', reason: 'interrupted: the run was stopped' }],
    [
      'no start',
      { kind: 'not-started', message: 'no such program' } as never,
      { outcome: 'failed', reason: 'no such program' },
    ],
  ])('by %s has its words', (_, end, expected) => {
    const about = { startedAt, now, timeoutMs: 600_000 };
    expect(toActionEnd({ ...end, output } as CommandEnd, about)).toEqual({ ...times, ...expected });
  });

  it('tells the last of what was said, from a whole character on', () => {
    const tail = (text: string): string => renderTail({ bytes: Buffer.from(text) });
    expect(tail('done\n')).toBe('done\n');
    expect(tail(`${'a'.repeat(9000)}z`)).toBe(`${'a'.repeat(maxTailBytes - 1)}z`);
    expect(tail(`é${'a'.repeat(maxTailBytes - 1)}`)).toBe('a'.repeat(maxTailBytes - 1));
    expect(tail('\u{1f600}'.repeat(3000))).toBe('\u{1f600}'.repeat(maxTailBytes / 4));
    expect(renderTail({ bytes: Buffer.from([0x61, 0xff, 0x62]) })).toBe('a\ufffdb');
  });

  it.each<[string, string]>([
    [
      'deploy-service: web does not run well: web_1 is unhealthy\n',
      'web does not run well: web_1 is unhealthy',
    ],
    ['first\nlast\n\n  \r\n', 'last'],
    ['pulling 1 %\rpulling 99 %\r\u001b[31mERROR\u001b[0m: no space\r\n', 'ERROR: no space'],
    ['a\u0007b\u202ec\u0000d', 'a\\u0007b\\u202ec\\u0000d'],
    ['no line end', 'no line end'],
  ])('has what the script said last in its reason, on one line: %j', (said, last) => {
    const about = { startedAt, now, timeoutMs: 600_000 };
    const output = { bytes: Buffer.from(said), isCut: false };
    const reasonOf = (end: object): string | undefined =>
      toActionEnd({ ...end, output } as never, about).reason;
    expect(reasonOf({ kind: 'exited', code: 4 })).toMatch(/^exit status 4 \(verify\): /);
    expect(reasonOf({ kind: 'exited', code: 4 })?.endsWith(last)).toBe(true);
    expect(reasonOf({ kind: 'signalled', signal: 'SIGKILL' })?.endsWith(last)).toBe(true);
    expect(reasonOf({ kind: 'deadline' })).toMatch(/^timeout: no end within 10m: /);
    expect(reasonOf({ kind: 'cancelled' })).toBe('interrupted: the run was stopped');
    expect(reasonOf({ kind: 'exited', code: 0 })).toBeUndefined();
  });

  it('has begin and end of a line that is too long', () => {
    const about = { startedAt, now, timeoutMs: 600_000 };
    const output = { bytes: Buffer.from(`why ${'\u{1f600}'.repeat(500)} because`), isCut: false };
    const reason = toActionEnd({ kind: 'exited', code: 3, output }, about).reason ?? '';
    expect(reason).toMatch(/^exit status 3 \(execute\): why .+ \.\.\. .+ because$/u);
    expect([...reason]).toHaveLength('exit status 3 (execute): '.length + maxLastLineLength);
    expect(reason).not.toMatch(/\p{Surrogate}/u);
  });

  it('tells lines of a terminal as lines', () => {
    expect(renderTail({ bytes: Buffer.from('Creating web_1 ... \rCreating web_1 ... done\r\nok\r') })).toBe(
      'Creating web_1 ... \rCreating web_1 ... done\nok',
    );
  });

  it('was called with the service’s name and nothing else of the action (D26, D35)', () => {
    expect(buildDeployArgs('web')).toEqual(['--force-recreate', 'web']);
  });
});

describe('a run', () => {
  const good = {
    line: 'a: succeeded',
    actionId: 'a',
    service: 'web',
    end: { outcome: 'succeeded' as const, exitCode: 0 },
  };
  const bad = { line: 'b: rejected, no', actionId: 'b', end: { outcome: 'rejected' as const, reason: 'no' } };

  it.each([
    ['nothing', [], 'nothing-to-do'],
    ['what needed no word', [{ line: '' }], 'nothing-to-do'],
    ['a deploy', [good], 'done'],
    ['what was handled before', [{ line: 'a: this approval was handled before' }], 'done'],
    ['a refusal', [bad], 'failed'],
    ['both', [good, bad], 'partial'],
    ['a step that failed', [{ line: 'a: cannot forget it', error: 'EBUSY' }], 'failed'],
  ])('with %s is told as such', (_, results, outcome) => expect(renderRun(results).outcome).toBe(outcome));

  it('tells each action, and no more lines than a person reads', () => {
    const { text, data } = renderRun(Array.from({ length: 300 }, () => bad));
    expect([text.length, text.at(-1)]).toEqual([201, 'and 100 more']);
    expect(data?.['actions']).toHaveLength(300);
    expect(renderRun([good]).data).toEqual({
      actions: [{ actionId: 'a', service: 'web', outcome: 'succeeded', exitCode: 0 }],
    });
  });

  it('is in the history with its reason, under its name in whichever text is shown', () => {
    const about = { at: startedAt, run: 'r', reason: 'approved by webui' };
    expect(toEvent(good, about)).toEqual({
      ...{ at: startedAt, run: 'r', concern: 'deploy-action', action: 'redeploy', service: 'web' },
      ...{ reason: 'a: approved by webui', outcome: 'done' },
    });
    expect(toEvent(bad, { ...about, reason: 'no' })).toEqual({
      ...{ at: startedAt, run: 'r', concern: 'deploy-action', action: 'redeploy' },
      ...{ reason: 'b: no', outcome: 'refused', error: 'b: no' },
    });
    expect(toEvent({ line: '' }, about)).toBeUndefined();
  });
});
