// How tests clear what they leave, and which may run beside others: rules that no type can hold.
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { filesBeside, namesAlone } from '../../support/beside.ts';

const root = resolve(import.meta.dirname, '../..');
const textOf = (file: string): string => readFileSync(resolve(root, file), 'utf8');

/** Whether a file takes the hook that belongs to whichever test began last. */
const takesGlobalHook = (file: string): boolean =>
  /import[^;]*\bonTestFinished\b[^;]*from 'vitest'/.test(textOf(file));

describe('the tests', () => {
  it('leave to one file of test/support the hook of whichever test began last', () => {
    const support = globSync('support/**/*.ts', { cwd: root });
    expect(support.filter(takesGlobalHook)).toEqual(['support/after-test.ts']);
  });

  it('that run side by side use none but the hook of their own context', () => {
    const files = globSync('{unit,integration,system}/**/*.test.ts', { cwd: root });
    const concurrent = files.filter((file) => /\b(?:it|test|describe)\.concurrent\b/.test(textOf(file)));
    expect(concurrent).toContain('integration/reconcile/failure.test.ts');
    expect(concurrent.filter(takesGlobalHook)).toEqual([]);
  });

  it('that run beside others measure no time and bound none', () => {
    expect(filesBeside.length).toBeGreaterThan(50);
    const measures =
      /performance\.now|hrtime|measureInTurn|Date\.now\(\) - \w*At\w*|toBeLessThan\w*\([^)]*(?:[mM]s\b|\d_000\))/;
    expect(filesBeside.filter((file) => measures.test(textOf(join('..', file))))).toEqual([]);
  });

  it('that run alone in their folder are all there', () => {
    const missing = namesAlone.filter((name) => !existsSync(resolve(root, `integration/${name}.test.ts`)));
    expect(missing).toEqual([]);
  });
});
