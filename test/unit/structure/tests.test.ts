// How tests clear what they leave: a rule that no type can hold.
import { globSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

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
});
