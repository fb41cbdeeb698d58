import { describe, expect, it } from 'vitest';
import { planRepairs } from '../../../src/lib/proxy/plan.ts';

const path = '/run/reeve/proxy/instances.map';
const file = (entries: Record<string, string>) => ({ path, entries: new Map(Object.entries(entries)) });
const shown = (entries: Record<string, string[]>) =>
  new Map(
    Object.entries(entries).map(([key, values]) => [
      key,
      values.map((value, index) => ({ ref: `0x${key.length}${index}`, value })),
    ]),
  );

describe('the comparison of a worker with the registry', () => {
  it('has nothing to do where they are the same, two of one key included', () => {
    expect(planRepairs(file({ a: '1', b: '2' }), shown({ a: ['1'], b: ['2', '2'] }))).toEqual([]);
  });

  it('adds what is missing, sets what differs and takes away what is too much, each in one change', () => {
    const repairs = planRepairs(
      file({ a: '1', b: '2', c: '3' }),
      shown({ b: ['9'], c: ['3', '4'], d: ['5'] }),
    );
    expect(repairs).toEqual([
      { what: 'a was missing (1)', commands: [`add map ${path} a 1`] },
      { what: 'b had 9 instead of 2', commands: [`set map ${path} b 2`] },
      { what: 'c had 3 and 4 instead of 3', commands: [`set map ${path} c 3`] },
      { what: 'd was registered no longer', commands: [`del map ${path} d`] },
    ]);
  });

  it('takes away by its reference what no command can name', () => {
    const repairs = planRepairs(file({ a: '1' }), shown({ a: ['1'], 'b;c': ['2', '3'], 'd\\e"': ['4'] }));
    expect(repairs).toEqual([
      {
        what: '"b;c" was there, which is no instance',
        commands: [`del map ${path} #0x30`, `del map ${path} #0x31`],
      },
      { what: String.raw`"d\\e\"" was there, which is no instance`, commands: [`del map ${path} #0x40`] },
    ]);
  });
});
