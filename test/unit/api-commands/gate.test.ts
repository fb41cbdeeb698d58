import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createGate } from '../../../src/lib/api-commands/gate.ts';

/** Work that ends when it is told to, and what it has done. */
function makeWorks(gate: ReturnType<typeof createGate>) {
  const events: string[] = [];
  const ends = new Map<string, () => void>();
  const start = (name: string, signal: AbortSignal = new AbortController().signal) => {
    const work = () =>
      new Promise<string>((resolve) => {
        events.push(`begin ${name}`);
        ends.set(name, () => resolve(name));
      });
    return gate(signal, work).then(
      (value) => void events.push(`end ${value}`),
      (error: Error) => void events.push(`${name}: ${error.message}`),
    );
  };
  const end = async (name: string): Promise<void> => {
    ends.get(name)?.();
    await setImmediate();
  };
  return { events, start, end };
}

describe('a gate', () => {
  it('lets so many in at once, and the others after them in their order', async () => {
    const { events, start, end } = makeWorks(createGate(2));
    const all = ['a', 'b', 'c', 'd'].map((name) => start(name));
    await setImmediate();
    expect(events).toEqual(['begin a', 'begin b']);
    await end('b');
    expect(events.slice(2)).toEqual(['end b', 'begin c']);
    await end('a');
    await end('c');
    await end('d');
    await Promise.all(all);
    expect(events.slice(4)).toEqual(['end a', 'begin d', 'end c', 'end d']);
  });

  it('takes no turn for whoever leaves, waiting or given one at the same moment', async () => {
    const { events, start, end } = makeWorks(createGate(1));
    const controllers = [new AbortController(), new AbortController()];
    const all = [
      start('a'),
      start('b', controllers[0]?.signal),
      start('c', controllers[1]?.signal),
      start('d'),
    ];
    await setImmediate();
    controllers[0]?.abort(new Error('left'));
    await setImmediate();
    expect(events).toEqual(['begin a', 'b: left']);
    const ended = end('a');
    controllers[1]?.abort(new Error('left'));
    await ended;
    await setImmediate();
    expect(events.filter((event) => event.startsWith('begin'))).toEqual(
      events.includes('begin c') ? ['begin a', 'begin c'] : ['begin a', 'begin d'],
    );
    await end('c');
    await end('d');
    await Promise.all(all);
    expect(events).toContain('end d');
  });

  it('is free again after work that fails, and does not begin for one who has left', async () => {
    const gate = createGate(1);
    const { signal } = new AbortController();
    await expect(gate(signal, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    await expect(gate(signal, () => Promise.resolve('fine'))).resolves.toBe('fine');
    const work = (): Promise<never> => Promise.reject(new Error('it began'));
    await expect(gate(AbortSignal.abort(new Error('left')), work)).rejects.toThrow('left');
  });
});
