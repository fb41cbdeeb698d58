import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createTurns } from '../../src/lib/turns.ts';

function makeGate(): { passed: Promise<string>; open: () => void } {
  let open = (): void => {};
  const passed = new Promise<string>((resolve) => {
    open = () => resolve('first');
  });
  return { passed, open };
}

describe('createTurns', () => {
  it('lets callers of one key work one at a time, in the order they came (P28, A48)', async () => {
    const turns = createTurns();
    let atWork = 0;
    let most = 0;
    const order: number[] = [];
    const work = async (index: number): Promise<number> => {
      most = Math.max(most, ++atWork);
      await sleep(1);
      atWork -= 1;
      order.push(index);
      return index;
    };
    const never = new AbortController().signal;
    const all = Array.from({ length: 50 }, (_, index) =>
      turns('a', () => work(index), index % 2 === 0 ? never : undefined),
    );
    const expected = Array.from({ length: 50 }, (_, index) => index);
    expect(await Promise.all(all)).toEqual(expected);
    expect([most, order]).toEqual([1, expected]);
  });

  it('lets callers of different keys work at once', async () => {
    const turns = createTurns();
    const told: string[] = [];
    const gate = makeGate();
    const waiting = async (): Promise<void> => {
      told.push('a begins');
      await gate.passed;
      told.push('a ends');
    };
    const other = async (): Promise<void> => {
      told.push('b');
      gate.open();
    };
    await Promise.all([turns('a', waiting), turns('b', other)]);
    expect(told).toEqual(['a begins', 'b', 'a ends']);
  });

  it('tells who leaves at once, passes it over, and lets nobody overtake (P28)', async () => {
    const turns = createTurns();
    const gate = makeGate();
    const leaving = new AbortController();
    const told: string[] = [];
    const tell = (name: string) => async (): Promise<string> => {
      told.push(name);
      return name;
    };
    const results = [turns('a', () => gate.passed), turns('a', tell('second'))];
    const left = turns('a', tell('left'), leaving.signal);
    const last = turns('a', tell('last'));
    leaving.abort(new Error('gone'));
    await expect(left).rejects.toThrow('gone');
    await sleep(5);
    expect(told).toEqual([]);
    gate.open();
    expect([await Promise.all(results), await last]).toEqual([['first', 'second'], 'last']);
    expect(told).toEqual(['second', 'last']);
  });

  it('does not begin for who has left before (P28)', async () => {
    const turns = createTurns();
    const work = async (): Promise<never> => {
      throw new Error('has begun');
    };
    await expect(turns('a', work, AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
    expect(await turns('a', async () => 'next')).toBe('next');
  });

  it('goes on after a failure, which only its own caller is told', async () => {
    const turns = createTurns();
    const failing = turns('a', () => Promise.reject(new Error('no')));
    const next = turns('a', () => Promise.resolve('yes'));
    await expect(failing).rejects.toThrow('no');
    expect(await next).toBe('yes');
  });
});
