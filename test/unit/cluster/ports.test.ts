import { describe, expect, it } from 'vitest';
import { allocatePort, endPort, firstPort, portKey, preferredPort } from '../../../src/lib/cluster/ports.ts';

const none: ReadonlySet<number> = new Set();

describe('the host port', () => {
  it.each([
    ['blog/web#0', 27396],
    ['blog/web#1', 27397],
    ['p/web#0', 27762],
  ])('preferred by %s is %i (L36, L183)', (key, port) => {
    expect(preferredPort(key)).toBe(port);
    expect(allocatePort({ key, reserved: {}, taken: none })).toBe(port);
  });

  it('is named by project, service and replica (L36)', () => {
    expect(portKey({ project: 'blog', service: 'web', index: 1 })).toBe('blog/web#1');
  });

  it('lies in the range for any key, long and astral ones too (L35)', () => {
    const keys = ['', '\u{1f600}', 'x'.repeat(5000), ...Array.from({ length: 500 }, (_, n) => `p/s#${n}`)];
    const ports = keys.map(preferredPort);
    expect(ports.filter((port) => port < 20_000 || port >= 30_000)).toEqual([]);
  });

  it('goes to the next one where another key has it reserved, stopped or not (R57)', () => {
    const reserved = { 'other/web#0': 27396, 'stopped/web#0': 27397 };
    expect(allocatePort({ key: 'blog/web#0', reserved, taken: none })).toBe(27398);
  });

  it('goes to the next one where something else holds it (R57)', () => {
    expect(allocatePort({ key: 'blog/web#0', reserved: {}, taken: new Set([27396]) })).toBe(27397);
  });

  it('stays the reserved one, whatever is free (R57, L39)', () => {
    const reserved = { 'blog/web#0': 21234 };
    expect(allocatePort({ key: 'blog/web#0', reserved, taken: none })).toBe(21234);
  });

  it('is chosen anew when something else has taken the reserved one', () => {
    const reserved = { 'blog/web#0': 21234 };
    expect(allocatePort({ key: 'blog/web#0', reserved, taken: new Set([21234]) })).toBe(27396);
  });

  it('is chosen anew when the reserved one is outside the range (L35)', () => {
    expect(allocatePort({ key: 'blog/web#0', reserved: { 'blog/web#0': 80 }, taken: none })).toBe(27396);
  });

  it('wraps at the end of the range', () => {
    const taken = new Set(range(27396, endPort));
    expect(allocatePort({ key: 'blog/web#0', reserved: {}, taken })).toBe(firstPort);
  });

  it('is refused when all are taken (R57)', () => {
    const taken = new Set(range(firstPort, endPort));
    expect(() => allocatePort({ key: 'blog/web#0', reserved: {}, taken })).toThrow(
      'cannot allocate a host port for "blog/web#0": all ports from 20000 to 29999 are taken',
    );
  });
});

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, offset) => from + offset);
}
