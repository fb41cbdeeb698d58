import { describe, expect, it } from 'vitest';
import { callCloud, dropRetryAfter } from '../../../src/lib/aws/call.ts';

/** As a search for credentials that looks at no signal. */
const deaf = (): Promise<never> => new Promise(() => {});

describe('a call', () => {
  it('ends with its deadline, whatever it waits for', async () => {
    await expect(callCloud({ action: 'ask', deadlineMs: 99.5 }, deaf)).rejects.toMatchObject({
      ...{ name: 'UnavailableError', code: 'DEADLINE', message: 'cannot ask: no whole answer within 0.1 s' },
    });
  });

  it('ends with the signal, whatever it waits for', async () => {
    const controller = new AbortController();
    const asking = callCloud({ action: 'ask', deadlineMs: 60_000, signal: controller.signal }, deaf);
    controller.abort();
    await expect(asking).rejects.toMatchObject({ code: 'INTERRUPTED', message: 'cannot ask: interrupted' });
  });

  it.each([
    [{ deadlineMs: 0 }, 'cannot ask: no time is left'],
    [{ deadlineMs: -3.5 }, 'cannot ask: no time is left'],
    [{ deadlineMs: 60_000, signal: AbortSignal.abort() }, 'cannot ask: interrupted'],
  ])('is not made with %o', async (limit, message) => {
    let made = 0;
    const send = async (): Promise<void> => {
      made += 1;
    };
    await expect(callCloud({ action: 'ask', ...limit }, send)).rejects.toMatchObject({ message });
    expect(made).toBe(0);
  });

  it.each([
    [1_234.5, '1.2 s'],
    [1_000, '1 s'],
  ])('of %d ms is told of in %s', async (deadlineMs, words) => {
    const told = async (): Promise<void> => {
      await callCloud({ action: 'ask', deadlineMs }, deaf);
    };
    await expect(told()).rejects.toThrow(`cannot ask: no whole answer within ${words}`);
  });
});

it('takes from an error how long the service asks to wait, and nothing else', async () => {
  const headers = { 'retry-after': '3600', 'x-amz-retry-after': '3600000', date: 'today' };
  const error = Object.assign(new Error('throttled'), { $response: { headers } });
  const handle = dropRetryAfter(async () => {
    throw error;
  });
  await expect(handle()).rejects.toBe(error);
  expect(headers).toEqual({ date: 'today' });
  const bare = dropRetryAfter(async () => {
    throw new Error('reset');
  });
  await expect(bare()).rejects.toThrow('reset');
});
