// Temporary directories of tests: gone after the test that made them.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from './after-test.ts';

/** Tests that run side by side pass their own hook. */
export function makeTempDir(whenFinished: (clean: () => void) => void = onTestFinished): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'reeve-test-')));
  whenFinished(() => rmSync(directory, { recursive: true, force: true, maxRetries: 10 }));
  return directory;
}
