// Adds one to the number under a key by conditional puts, as often as it takes. `count-up.ts STORE KEY`, the store as the JSON of its
// place.
import { openStore } from '../../../src/lib/store/open.ts';
import { PreconditionError } from '../../../src/lib/store/store.ts';

const [place = '', key = ''] = process.argv.slice(2);
const store = await openStore(JSON.parse(place));

for (let written = false; !written; ) {
  const current = await store.get(key);
  const next = String(Number(current?.text ?? '0') + 1);
  try {
    await store.put(key, next, current === undefined ? { ifAbsent: true } : { ifMatch: current.etag });
    written = true;
  } catch (error) {
    if (!(error instanceof PreconditionError)) throw error;
  }
}
