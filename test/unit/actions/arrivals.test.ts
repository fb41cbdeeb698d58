import { readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  forgetArrival,
  noteArrival,
  readWaitedMs,
  sweepArrivals,
  waitedMs,
} from '../../../src/lib/actions/arrivals.ts';
import { actionPlaces } from '../../../src/lib/actions/places.ts';
import { contentKey } from '../../../src/lib/deploy-runner/key.ts';
import { actionsContext } from '../../support/actions-context.ts';
import { makeTempDir } from '../../support/temp.ts';

const key = contentKey('a', 'x');
const hourMs = 3_600_000;

function aPlace() {
  let aheadMs = 0;
  const root = makeTempDir();
  const path = join(root, 'a.json');
  writeFileSync(path, '{}');
  // What the sender says is not asked.
  utimesSync(path, 1, 1);
  const ctx = actionsContext(root, () => new Date(Date.now() + aheadMs));
  const name = { text: 'a.json', path: Buffer.from(path) };
  return {
    ...{ ctx, directory: actionPlaces(ctx.paths).arrivals },
    put: (ms: number) => {
      aheadMs = ms;
    },
    read: () => readWaitedMs(ctx, key, name),
  };
}

describe('the time that an action has waited', () => {
  it('is that since its hand-over, whatever the clock was set to (D41)', async () => {
    const { ctx, put, read } = aPlace();
    await noteArrival(ctx, key);
    for (const aheadMs of [24 * hourMs, -24 * hourMs]) {
      put(aheadMs);
      expect(await read()).toBeLessThan(hourMs / 2);
    }
  });

  it('is that since the first hand-over', async () => {
    const { ctx, directory } = aPlace();
    await noteArrival(ctx, key);
    const [name = ''] = readdirSync(directory);
    const first = readFileSync(join(directory, name), 'utf8');
    await noteArrival(ctx, key);
    expect([readdirSync(directory), readFileSync(join(directory, name), 'utf8')]).toEqual([[name], first]);
  });

  it.each(['', '{"version":1,"atMs":"x"}', '{"version":9,"atMs":1}'])(
    'is that of the file in the inbox where the note says %j',
    async (text) => {
      const { ctx, directory, put, read } = aPlace();
      await noteArrival(ctx, key);
      writeFileSync(join(directory, `${key}.json`), text);
      put(hourMs);
      expect(await read()).toBeGreaterThan(hourMs - 1000);
      expect(await read()).toBeLessThan(hourMs * 2);
    },
  );

  it('is that of the file in the inbox where there is no note, and never below 0', async () => {
    const { put, read } = aPlace();
    put(hourMs);
    expect(await read()).toBeGreaterThan(hourMs - 1000);
    put(-hourMs);
    expect(await read()).toBe(0);
  });

  it('is that since the boot at least, where the clock was put back by one', () => {
    const since = { atMs: 10 * hourMs, boot: { id: 'a', uptimeMs: 5 * hourMs } };
    const at = (atMs: number) => ({ atMs, boot: { id: 'b', uptimeMs: 60_000 } });
    expect([at(0), at(11 * hourMs)].map((now) => waitedMs(since, now))).toEqual([60_000, hourMs]);
  });
});

describe('a note of a hand-over', () => {
  it('goes with its action, and after two days by itself', async () => {
    const { ctx, directory } = aPlace();
    const other = contentKey('b', 'x');
    await noteArrival(ctx, key);
    await noteArrival(ctx, other);
    await forgetArrival(ctx, key);
    await forgetArrival(ctx, key);
    await sweepArrivals(ctx);
    expect(readdirSync(directory)).toEqual([`${other}.json`]);
    const old = Date.now() / 1000 - 49 * 3600;
    utimesSync(join(directory, `${other}.json`), old, old);
    await sweepArrivals(ctx);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('has no key that names a file elsewhere', async () => {
    await expect(noteArrival(aPlace().ctx, '../x')).rejects.toThrow('internal error');
  });
});
