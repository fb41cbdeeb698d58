import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createQueue } from '../../../src/lib/api-jobs/queue.ts';

const never = new AbortController().signal;

describe('callers that wait for a slot (P28)', () => {
  it('have their turn one at a time, in the order they came', async () => {
    const queue = createQueue();
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
    const all = Array.from({ length: 50 }, (_, index) => queue(never, () => work(index)));
    const expected = Array.from({ length: 50 }, (_, index) => index);
    expect(await Promise.all(all)).toEqual(expected);
    expect([most, order]).toEqual([1, expected]);
  });

  it('are told at once when they leave, and are passed over', async () => {
    const queue = createQueue();
    let end = (_: string): void => {};
    const first = new Promise<string>((resolve) => {
      end = resolve;
    });
    const leaving = new AbortController();
    const results = [queue(never, () => first), queue(never, () => Promise.resolve('third'))];
    const ran: string[] = [];
    const left = queue(leaving.signal, () => Promise.resolve(ran.push('left')));
    const last = queue(never, () => Promise.resolve('last'));
    leaving.abort(new Error('gone'));
    await expect(left).rejects.toThrow('gone');
    end('first');
    expect([await Promise.all(results), await last, ran]).toEqual([['first', 'third'], 'last', []]);
  });

  it('do not keep the next ones where they fail', async () => {
    const queue = createQueue();
    const failed = queue(never, () => Promise.reject(new Error('no')));
    const next = queue(never, () => Promise.resolve('next'));
    await expect(failed).rejects.toThrow('no');
    expect(await next).toBe('next');
  });
});
