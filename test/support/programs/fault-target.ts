// Does one act of the state, lock or store code when told `go`, and prints how it went. `fault-target.ts ACT DIR`.
import { join } from 'node:path';
import { systemErrorCode } from '../../../src/lib/errors.ts';
import { acquireLock } from '../../../src/lib/lock/flock.ts';
import { writeDocument } from '../../../src/lib/state/document.ts';
import { appendHistory } from '../../../src/lib/state/history.ts';
import { openFileStore } from '../../../src/lib/store/file.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { anEvent, newBody, textDocument } from '../fault-cases.ts';

const acts: Record<string, (directory: string) => Promise<void>> = {
  document: async (directory) => {
    await writeDocument(join(directory, 'state.json'), textDocument, { text: newBody });
  },
  history: async (directory) => {
    await appendHistory({ stateDir: directory }, [anEvent('second'), anEvent('third')]);
  },
  lock: async (directory) => {
    const request = { command: 'reeve reconcile', runId: 'run', clock: systemClock };
    const lock = await acquireLock(directory, 'reconcile', request);
    lock.release();
  },
  put: async (directory) => {
    const store = openFileStore(directory);
    const current = await store.get('nodes/web-1/desired.json');
    await store.put(
      'nodes/web-1/desired.json',
      newBody,
      current === undefined ? { ifAbsent: true } : { ifMatch: current.etag },
    );
  },
  stream: async (directory) => {
    await openFileStore(directory).putStream('nodes/web-1/desired.json', chunksOf(newBody));
  },
};

const [name = '', directory = ''] = process.argv.slice(2);
const act = acts[name];
if (act === undefined) throw new Error(`no such act: ${name}`);

// Once beforehand, so that all modules are loaded and the worker thread is there before anybody counts.
await act(join(directory, 'warm'));
process.stdout.write('ready\n');
await new Promise((resolve) => process.stdin.once('data', resolve));
process.stdin.destroy();
try {
  await act(directory);
  process.stdout.write('done\n');
} catch (error) {
  process.stdout.write(`failed ${systemErrorCode(error)} ${(error as Error).message}\n`);
}

async function* chunksOf(text: string): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += 8192) yield bytes.subarray(at, at + 8192);
}
