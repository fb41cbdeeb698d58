// Temporary directories of tests: gone after the test that made them.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export function makeTempDir(): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'reeve-test-')));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}
