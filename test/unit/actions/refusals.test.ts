import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Marker, makeMarker, readMarker } from '../../../src/lib/actions/markers.ts';
import { actionPlaces } from '../../../src/lib/actions/places.ts';
import { countRecent, noteRefusal, readRefusals, sweepRefusals } from '../../../src/lib/actions/refusals.ts';
import { refuseAction } from '../../../src/lib/actions/results.ts';
import { contentKey } from '../../../src/lib/deploy-runner/key.ts';
import { actionsContext } from '../../support/actions-context.ts';
import { makeTempDir } from '../../support/temp.ts';

const now = new Date('2026-11-30T12:00:00Z');
const dayMs = 24 * 60 * 60_000;
const none = { keys: new Set<string>(), isWhole: true };
const limits = { most: 10_000, keptMs: 30 * dayMs };

function setUp() {
  const ctx = actionsContext(makeTempDir(), () => now);
  const places = actionPlaces(ctx.paths);
  const setAge = (key: string, days: number): void => {
    const at = new Date(now.getTime() - days * dayMs);
    utimesSync(join(places.refusals, key), at, at);
  };
  return {
    ...{ ctx, places, setAge },
    refuse: async (actionId: string, days: number): Promise<string> => {
      const key = contentKey(actionId, 'x');
      expect(await refuseAction(ctx, { node: 'web-1', actionId, key, reason: 'no' })).toBe('refused');
      setAge(key, days);
      return key;
    },
    sweep: async (source: typeof none & Partial<typeof limits>): Promise<void> =>
      await sweepRefusals(ctx, await readRefusals(ctx), { ...limits, ...source }),
    keys: () => readdirSync(places.refusals).sort(),
    markers: () => readdirSync(places.markers).sort(),
  };
}

describe('what was refused (D46)', () => {
  it('is forgotten after thirty days, once it is gone at the source', async () => {
    const { ctx, refuse, markers, keys, sweep } = setUp();
    const [old, young, there] = [await refuse('a', 31), await refuse('b', 29), await refuse('c', 31)];
    await sweep({ keys: new Set([there]), isWhole: true });
    expect(keys()).toEqual([young, there].sort());
    expect(markers()).toEqual([`${young}.json`, `${there}.json`].sort());
    expect(await readMarker(ctx, old)).toBeUndefined();
  });

  it('stays where nobody knows all that is at the source', async () => {
    const { refuse, markers, sweep } = setUp();
    await refuse('a', 31);
    await sweep({ ...none, isWhole: false });
    expect(markers()).toHaveLength(1);
  });

  it('stays where it waits in the inbox', async () => {
    const { refuse, markers, places, sweep } = setUp();
    await refuse('a', 31);
    mkdirSync(places.inbox, { recursive: true });
    writeFileSync(join(places.inbox, 'a.json'), '{}');
    await sweep(none);
    expect(markers()).toHaveLength(1);
  });

  it('stays with a clock that was set back', async () => {
    const { refuse, markers, sweep } = setUp();
    await refuse('a', -400);
    await sweep(none);
    expect(markers()).toHaveLength(1);
  });

  it('is kept to so many, the oldest of what is not known to be there go first', async () => {
    const { refuse, keys, sweep } = setUp();
    const made = [];
    for (const [index, id] of ['a', 'b', 'c', 'd', 'e'].entries()) made.push(await refuse(id, 5 - index));
    const source = { keys: new Set(made.slice(0, 1)), isWhole: false };
    await sweep({ ...source, most: 3 });
    expect(keys()).toEqual([made[0], made[3], made[4]].sort());
    await sweep({ ...source, most: 3 });
    expect(keys()).toHaveLength(3);
  });

  it('is no redeploy that was begun: its marker stays, whatever its name says', async () => {
    const { ctx, setAge, keys, markers, sweep } = setUp();
    const states: Marker['state'][] = [
      { kind: 'started', startedAt: '2026-06-04T03:00:00.000Z' },
      { kind: 'reported', outcome: 'succeeded', endedAt: '2026-06-04T03:00:00.000Z', eventName: 'e' },
      { kind: 'reported', outcome: 'unknown', endedAt: '2026-06-04T03:00:00.000Z', eventName: 'e' },
    ];
    for (const [index, state] of states.entries()) {
      const [actionId, key] = [`a-${index}`, contentKey(`a-${index}`, 'x')];
      await noteRefusal(ctx, key);
      setAge(key, 31);
      await makeMarker(ctx, { actionId, key, actionType: 'redeploy', run: 'run-1', state });
    }
    await sweep({ ...none, most: 0, keptMs: 0 });
    expect(markers().filter((name) => name.endsWith('.json'))).toHaveLength(3);
    expect(keys()).toEqual([contentKey('a-0', 'x')]);
  });

  it('is counted by the day, whatever a clock that was wrong has said', async () => {
    const { ctx, refuse } = setUp();
    for (const [id, days] of [
      ['a', 0],
      ['b', 0.9],
      ['c', 1.1],
      ['d', -0.5],
      ['e', -400],
    ] as const) {
      await refuse(id, days);
    }
    expect(countRecent(await readRefusals(ctx), now)).toBe(3);
  });

  it('is nothing to do on a node that has refused nothing, and a name without a marker goes', async () => {
    const { ctx, setAge, keys, places, sweep } = setUp();
    await sweep(none);
    expect(existsSync(places.refusals)).toBe(false);
    const key = contentKey('a', 'x');
    await noteRefusal(ctx, key);
    setAge(key, 31);
    await sweep(none);
    expect(keys()).toEqual([]);
  });
});
