import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Hold, holdFor, readHolds } from '../../../src/lib/hold/holds.ts';
import { endHolds, listHolds, setHold } from '../../../src/lib/hold/run.ts';
import { silentLog } from '../../../src/lib/report/log.ts';

const now = new Date('2026-06-04T03:00:00.000Z');

describe('the hold of a service', () => {
  const own = aHold({ target: 'blog/web', until: '2026-06-04T04:00:00.000Z' });
  const machine = aHold({ target: 'node', until: '2026-06-04T05:00:00.000Z' });

  it.each([
    ['its own', [own], own],
    ['the one of the machine', [machine], machine],
    ['the longer one of both', [own, machine], machine],
    ['none where another is held', [aHold({ target: 'blog/api' })], undefined],
    ['none once it has ended', [aHold({ target: 'blog/web', until: now.toISOString() })], undefined],
    ['none where none is set', [], undefined],
  ])('is %s', (_, holds, expected) => {
    expect(holdFor(holds, 'blog/web', now)).toBe(expected);
  });
});

describe('holds on disk', () => {
  let stateDir: string;

  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'reeve-hold-'));
  });

  afterEach(async () => {
    await rm(stateDir, { recursive: true });
  });

  it('are set, listed, replaced and ended', async () => {
    const ctx = aContext();
    await setHold(ctx, { target: 'blog/web', forMs: 3_600_000, reason: 'index rebuild' });
    await setHold(ctx, { target: 'node', forMs: 60_000, reason: 'disk swap' });
    await setHold(ctx, { target: 'blog/web', forMs: 5_400_000, reason: 'still going' });
    const web = aHold({ target: 'blog/web', until: '2026-06-04T04:30:00.000Z', reason: 'still going' });
    const node = aHold({ target: 'node', until: '2026-06-04T03:01:00.000Z', reason: 'disk swap' });
    const by = userInfo().username;
    expect(await listHolds(ctx)).toEqual({
      outcome: 'done',
      text: [
        `this node: held for another 1m, until 2026-06-04T03:01:00.000Z, by ${by}: disk swap`,
        `blog/web: held for another 1h 30m, until 2026-06-04T04:30:00.000Z, by ${by}: still going`,
      ],
      data: { holds: [node, web] },
    });
    expect(await endHolds(ctx, 'node')).toEqual({
      outcome: 'done',
      text: ['this node: hold ended'],
      data: { ended: [node] },
    });
    expect(await readHolds(ctx.paths, now)).toEqual([web]);
    expect(JSON.parse(await readFile(join(stateDir, 'holds.json'), 'utf8'))).toEqual({
      version: 1,
      holds: [web],
    });
  });

  it('end by themselves, and go with the next write', async () => {
    await setHold(aContext(), { target: 'blog/web', forMs: 1000, reason: 'x' });
    const later = new Date(now.getTime() + 1000);
    expect(await readHolds({ stateDir }, later)).toEqual([]);
    await setHold(aContext(later), { target: 'node', forMs: 1000, reason: 'y' });
    const stored = JSON.parse(await readFile(join(stateDir, 'holds.json'), 'utf8')) as { holds: Hold[] };
    expect(stored.holds.map(({ target }) => target)).toEqual(['node']);
  });

  it('hold everything when nobody can tell any more what was held (R32)', async () => {
    await writeFile(join(stateDir, 'holds.json'), '{"version":1,"hol');
    expect(await readHolds({ stateDir }, now)).toEqual([
      {
        target: 'node',
        until: '2026-06-04T04:00:00.000Z',
        reason:
          'holds.json was damaged, and what it held is unknown: `reeve hold --end --node` when that is clear',
        by: 'reeve',
        since: now.toISOString(),
      },
    ]);
    await endHolds(aContext(), 'node');
    expect(await readHolds({ stateDir }, now)).toEqual([]);
  });

  it('all end without a target', async () => {
    const ctx = aContext();
    await setHold(ctx, { target: 'blog/web', forMs: 1000, reason: 'x' });
    await setHold(ctx, { target: 'node', forMs: 1000, reason: 'y' });
    const outcome = await endHolds(ctx, undefined);
    expect(outcome.text).toEqual(['blog/web: hold ended', 'this node: hold ended']);
    expect(await listHolds(ctx)).toEqual({ outcome: 'done', text: ['nothing is held'], data: { holds: [] } });
    expect((await endHolds(ctx, undefined)).outcome).toBe('nothing-to-do');
    expect((await endHolds(ctx, 'blog/web')).text).toEqual(['blog/web is not held']);
  });

  it('of a damaged file are the ones of the copy before (R55)', async () => {
    const ctx = aContext();
    await setHold(ctx, { target: 'blog/web', forMs: 1000, reason: 'x' });
    await setHold(ctx, { target: 'node', forMs: 1000, reason: 'y' });
    await writeFile(join(stateDir, 'holds.json'), '\0\0\0');
    const holds = await readHolds({ stateDir }, now);
    expect(holds.map(({ target }) => target)).toEqual(['blog/web']);
  });

  function aContext(at: Date = now): Parameters<typeof setHold>[0] {
    const clock = { now: () => at, sleep: () => Promise.resolve() };
    const paths = {
      configFile: '',
      stateDir,
      runDir: stateDir,
      cacheDir: stateDir,
      locksDir: stateDir,
      wakeDir: stateDir,
    };
    return { paths, clock, log: silentLog };
  }
});

function aHold(overrides: Partial<Hold>): Hold {
  return {
    target: 'node',
    until: '2026-06-04T04:00:00.000Z',
    reason: 'maintenance',
    by: userInfo().username,
    since: now.toISOString(),
    ...overrides,
  };
}
