// Cleaning up after what all tests of a file share.
import { afterAll } from 'vitest';

type Clean = () => void | Promise<void>;

/** Called at the top of a file or block: gives what collects the hooks that run, last first, once all its tests are done. */
export function collectAfterAll(): (clean: Clean) => void {
  const hooks: Clean[] = [];
  afterAll(async () => {
    for (const hook of hooks.reverse()) await hook();
  });
  return (clean) => void hooks.push(clean);
}
