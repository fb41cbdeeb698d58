import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Marker, makeMarker, readMarker, writeMarker } from '../../../src/lib/actions/markers.ts';
import { actionPlaces } from '../../../src/lib/actions/places.ts';
import { refuseAction, tellEnd } from '../../../src/lib/actions/results.ts';
import { listResults, putResult, takeEventTime } from '../../../src/lib/actions/spool.ts';
import { parseEventFileName } from '../../../src/lib/deploy-runner/event.ts';
import { contentKey } from '../../../src/lib/deploy-runner/key.ts';
import { actionsContext } from '../../support/actions-context.ts';
import { makeTempDir } from '../../support/temp.ts';

const at = '2026-06-04T03:00:00.000Z';
const end = { outcome: 'succeeded', startedAt: at, endedAt: at, exitCode: 0 } as const;
const dayMs = 24 * 60 * 60_000;

describe('results of many at once', () => {
  it('have one name each and come in its order, though they are of one action and one millisecond (D15)', async () => {
    const root = makeTempDir();
    const ctx = actionsContext(root, () => new Date(at));
    const seen: string[] = [];
    const started = Array.from({ length: 8 }, (_, index) => index);
    await Promise.all(
      started.map(async (index) => {
        const key = contentKey('a', `${index}`);
        const marker: Marker = {
          ...{ actionId: 'a', key, actionType: 'redeploy', run: 'run-1' },
          state: { kind: 'started', startedAt: at },
        };
        if (index % 2 === 0) await refuseAction(ctx, { node: 'vps', actionId: 'a', key, reason: 'no' });
        else {
          await makeMarker(ctx, marker);
          await tellEnd(ctx, marker, { node: 'vps', end });
        }
        for (const name of await listResults(ctx)) if (!seen.includes(name)) seen.push(name);
      }),
    );
    expect(seen).toHaveLength(started.length);
    expect(seen).toEqual([...seen].sort());
    expect(new Set(seen.map((name) => parseEventFileName(name)?.epochMs)).size).toBe(started.length);
  });

  it('are not told under another name by another try', async () => {
    const ctx = actionsContext(makeTempDir());
    const key = contentKey('a', 'x');
    const marker: Marker = {
      ...{ actionId: 'a', key, actionType: 'redeploy', run: 'run-1' },
      state: { kind: 'started', startedAt: at },
    };
    const eventName = 'evt-vps-1780000000000-action_result-a.json';
    await makeMarker(ctx, marker);
    await writeMarker(ctx, { ...marker, state: { kind: 'ended', ...end, eventName, event: '{}\n' } });
    for (let tries = 0; tries < 2; tries += 1) await tellEnd(ctx, marker, { node: 'vps', end });
    expect(await listResults(ctx)).toEqual([eventName]);
    expect(await readMarker(ctx, key)).toMatchObject({ state: { kind: 'reported', eventName } });
  });
});

describe('a result in the outbox', () => {
  it('is put again without harm, and is not overwritten by another', async () => {
    const ctx = actionsContext(makeTempDir());
    const eventName = 'evt-vps-1780000000000-action_result-a.json';
    for (let tries = 0; tries < 2; tries += 1) await putResult(ctx, { eventName, event: '{}\n' });
    await expect(putResult(ctx, { eventName, event: '{"a":1}\n' })).rejects.toThrow(
      'another result has its name',
    );
    expect(readFileSync(join(actionPlaces(ctx.paths).outbox, eventName), 'utf8')).toBe('{}\n');
  });
});

describe('the time in the names of results', () => {
  it('goes by a clock that is right again once the last is over a day ahead, and says so once', async () => {
    let now = new Date('2099-01-01T00:00:00.000Z');
    const warnings: string[] = [];
    const base = actionsContext(makeTempDir(), () => now);
    const ctx = { ...base, log: { ...base.log, warning: (text: string) => void warnings.push(text) } };
    await takeEventTime(ctx);
    now = new Date(at);
    expect(await takeEventTime(ctx)).toBe(now.getTime());
    expect(await takeEventTime(ctx)).toBe(now.getTime() + 1);
    expect(warnings).toEqual([
      'the last result has 2099-01-01T00:00:00.000Z in its name, more than a day ahead: names go by the clock again',
    ]);
  });

  it('goes on from the last one where that is a day ahead at most', async () => {
    let now = new Date(Date.parse(at) + dayMs);
    const ctx = actionsContext(makeTempDir(), () => now);
    await takeEventTime(ctx);
    now = new Date(at);
    expect(await takeEventTime(ctx)).toBe(now.getTime() + dayMs + 1);
  });

  it.each([
    ['of a later version', '{"version":2,"epochMs":5}', 'names of results go by the clock: cannot read'],
    ['no instant that a clock can tell', '{"version":1,"epochMs":8640000000000001}', 'is no instant'],
  ])('goes by the clock where the last one is %s: a result leaves all the same', async (_, text, told) => {
    const warnings: string[] = [];
    const base = actionsContext(makeTempDir(), () => new Date(at));
    const ctx = { ...base, log: { ...base.log, warning: (line: string) => void warnings.push(line) } };
    const { eventClock } = actionPlaces(ctx.paths);
    mkdirSync(dirname(eventClock), { recursive: true });
    writeFileSync(eventClock, text);
    expect(await takeEventTime(ctx)).toBe(Date.parse(at));
    expect(warnings.join(' ')).toContain(told);
  });
});
