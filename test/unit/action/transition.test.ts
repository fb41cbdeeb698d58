import { describe, expect, it } from 'vitest';
import { addTransition, approvalTime } from '../../../src/lib/action/transition.ts';
import { parseAction } from '../../../src/lib/deploy-runner/action.ts';
import { maxActionBytes } from '../../../src/lib/deploy-runner/names.ts';
import { InputError } from '../../../src/lib/errors.ts';

const base = { action_id: 'redeploy-a-b', type: 'redeploy', node: 'a', service: 'b' };
const approve = { from: 'pending', to: 'approved', timestamp: 1_780_000_000, by: 'operator-ann' } as const;

function add(document: object, step: Parameters<typeof addTransition>[1] = approve, more = {}): string {
  return addTransition(Buffer.from(JSON.stringify(document)), step, more);
}

describe('addTransition', () => {
  it('adds who, when and why, and leaves everything else as others wrote it', () => {
    const document = {
      ...base,
      details: { x: [1, { y: null }] },
      status: 'pending',
      updated_at: 1,
      other: 'ü',
    };
    const history = [{ from: null, to: 'pending', timestamp: 1, by: 'system', extra: true }];
    const text = add(
      { ...document, transition_history: history },
      { ...approve, reason: 'right' },
      { result: 7 },
    );
    expect(JSON.parse(text)).toStrictEqual({
      ...document,
      ...{ status: 'approved', updated_at: 1_780_000_000, result: 7 },
      transition_history: [...history, { ...approve, reason: 'right' }],
    });
    expect(text.endsWith('}\n')).toBe(true);
  });

  it.each([[undefined], [null], [[]]])('begins a history where there is %o', (history) => {
    expect(JSON.parse(add({ ...base, transition_history: history })).transition_history).toStrictEqual([
      approve,
    ]);
  });

  it('keeps a member that is named like what objects inherit', () => {
    const bytes = Buffer.from(`{"__proto__":{"x":1},${JSON.stringify(base).slice(1)}`);
    expect(addTransition(bytes, approve)).toContain('"__proto__"');
  });

  it('keeps a long reason short, and has none where it is empty', () => {
    const of = (reason: string): unknown =>
      JSON.parse(add(base, { ...approve, reason })).transition_history[0].reason;
    expect([of('x'.repeat(5000)), of('')]).toStrictEqual(['x'.repeat(1000), undefined]);
  });

  it('always leaves room for the steps that follow', () => {
    const steps = [
      approve,
      { from: 'approved', to: 'running', timestamp: 1, by: 'system', key: 'k'.repeat(129) },
      { from: 'running', to: 'failed', timestamp: 1, by: 'system', reason: '\u0001'.repeat(1000) },
    ] as const;
    let largest = 0;
    for (let size = 40_000; size < maxActionBytes; size += 100) {
      let text = JSON.stringify({ ...base, note: 'x'.repeat(size) });
      try {
        text = addTransition(Buffer.from(text), approve);
      } catch (error) {
        expect(error).toBeInstanceOf(InputError);
        break;
      }
      largest = size;
      for (const step of steps.slice(1))
        text = addTransition(Buffer.from(text), step, { result: { a: 'b'.repeat(500) } });
      expect(parseAction(Buffer.from(text)).transitions).toHaveLength(3);
    }
    expect(largest).toBeGreaterThan(50_000);
  });

  it('refuses a history that has become too long to be read again', () => {
    const history = Array.from({ length: 1000 }, () => ({ to: 'a', timestamp: 1, by: 'b' }));
    expect(() => add({ ...base, transition_history: history })).toThrow(InputError);
  });
});

describe('approvalTime', () => {
  it('D42 is now in seconds, and never that of an earlier approval, whatever the clock says', () => {
    const now = new Date(1_780_000_000_999);
    expect(approvalTime(now, new Set())).toBe(1_780_000_000);
    expect(approvalTime(now, new Set([1_780_000_000, 1_780_000_001, 1_780_000_003]))).toBe(1_780_000_002);
  });
});
