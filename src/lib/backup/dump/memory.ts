// Buffers that a stream has done with are given back in time. V8 knows how small its own part of a buffer is, and lets tens of
// megabytes of them lie; a collection of what is young costs it less than a millisecond.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const everyBytes = 4 * 1024 * 1024;

type Collect = (options: { type: 'minor' }) => void;
let collect: Collect | undefined;

/** Called with the size of each chunk that has passed. */
export function createCollector(): (sizeBytes: number) => void {
  let passed = 0;
  return (sizeBytes) => {
    passed += sizeBytes;
    if (passed < everyBytes) return;
    passed = 0;
    collect ??= exposeCollection();
    collect({ type: 'minor' });
  };
}

function exposeCollection(): Collect {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as Collect;
}
