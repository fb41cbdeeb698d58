import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { markerDocument } from '../../../src/lib/actions/documents.ts';
import {
  hasMarker,
  listOpenKeys,
  type Marker,
  makeMarker,
  readMarker,
} from '../../../src/lib/actions/markers.ts';
import { actionPlaces } from '../../../src/lib/actions/places.ts';
import { refuseAction, tellEnd } from '../../../src/lib/actions/results.ts';
import { listResults, putResult, removeResults, takeEventTime } from '../../../src/lib/actions/spool.ts';
import { contentKey } from '../../../src/lib/deploy-runner/key.ts';
import { actionsContext } from '../../support/actions-context.ts';
import { makeTempDir } from '../../support/temp.ts';

const key = contentKey('a', 'x');
const at = '2026-06-04T03:00:00.000Z';
const started: Marker = {
  ...{ actionId: 'a', key, actionType: 'redeploy', service: 'web', run: 'run-1' },
  state: { kind: 'started', startedAt: at },
};
const end = { outcome: 'succeeded', startedAt: at, endedAt: at, exitCode: 0 } as const;

describe('a marker', () => {
  it.each<[string, Marker['state']]>([
    ['started', { kind: 'started', startedAt: at }],
    [
      'started, with its group',
      { kind: 'started', startedAt: at, group: { bootId: 'b', pid: 7, startTime: '9' } },
    ],
    ['ended', { kind: 'ended', ...end, eventName: 'e', event: '{}\n' }],
    ['reported', { kind: 'reported', outcome: 'rejected', endedAt: at, reason: 'no', eventName: 'e' }],
  ])('is read as it was written: %s', (_, state) => {
    const marker = { ...started, state };
    expect(markerDocument.parse({ version: 1, ...marker })).toEqual(marker);
  });

  it.each<[string, object]>([
    ['no state', { state: undefined }],
    ['an unknown state', { state: { kind: 'waiting' } }],
    ['a state from the prototype', { state: { kind: 'toString' } }],
    ['an unknown outcome', { state: { kind: 'reported', outcome: 'fine', endedAt: at, eventName: 'e' } }],
    ['an end without its event', { state: { kind: 'ended', ...end, eventName: 'e' } }],
    ['a process that is none', { state: { kind: 'started', startedAt: at, group: { pid: 'x' } } }],
    [
      'a process of no boot',
      { state: { kind: 'started', startedAt: at, group: { pid: 7, startTime: '9' } } },
    ],
    ['no key', { key: undefined }],
  ])('is damaged with %s', (_, more) => {
    expect(() => markerDocument.parse({ version: 1, ...started, ...more })).toThrow(TypeError);
  });

  it('is made once, of many at once (R37)', async () => {
    const ctx = actionsContext(makeTempDir());
    const makes = Array.from({ length: 20 }, (_, index) =>
      makeMarker(ctx, { ...started, run: `run-${index}` }),
    );
    const made = await Promise.all(makes);
    expect(made.filter((one) => one === 'made')).toHaveLength(1);
    expect(await readMarker(ctx, key)).toMatchObject({ run: `run-${made.indexOf('made')}` });
    expect(readdirSync(actionPlaces(ctx.paths).markers).sort()).toEqual([`${key}.json`, `${key}.open`]);
  });

  it('that is damaged is one all the same', async () => {
    const ctx = actionsContext(makeTempDir());
    await makeMarker(ctx, started);
    const path = join(actionPlaces(ctx.paths).markers, `${key}.json`);
    const elsewhere = { kind: 'ended', ...end, event: '{}', eventName: '../../../evil.json' };
    const texts = ['', '{"version":1', JSON.stringify({ ...started, key: `b${key}` })];
    // What would be written elsewhere than into the outbox.
    for (const text of [...texts, JSON.stringify({ version: 1, ...started, state: elsewhere })]) {
      writeFileSync(path, text);
      expect([await readMarker(ctx, key), await hasMarker(ctx, key)]).toEqual(['damaged', true]);
      expect(await makeMarker(ctx, started)).toBe('known');
      expect(readFileSync(path, 'utf8')).toBe(text);
    }
  });

  it.each<[string, (path: string) => void, string]>([
    ['a later version', (path) => writeFileSync(path, '{"version":9}'), 'newer'],
    ['a directory', (path) => mkdirSync(path), 'unreadable'],
    ['a link', (path) => symlinkSync('/etc/hostname', path), 'unreadable'],
    ['a device', (path) => execFileSync('mknod', [path, 'b', '7', '200']), 'unreadable'],
  ])('that is %s is one all the same, and is not written over', async (_, make, state) => {
    const ctx = actionsContext(makeTempDir());
    await makeMarker(ctx, started);
    const path = join(actionPlaces(ctx.paths).markers, `${key}.json`);
    rmSync(path);
    make(path);
    const { ino } = lstatSync(path);
    expect([await readMarker(ctx, key), await hasMarker(ctx, key)]).toEqual([state, true]);
    expect(await makeMarker(ctx, started)).toBe('known');
    await expect(tellEnd(ctx, started, { node: 'vps', end })).rejects.toThrow('cannot write the marker of a');
    expect([lstatSync(path).ino, await listResults(ctx)]).toEqual([ino, []]);
  });

  it('is neither there nor missing where its directory cannot be read', async () => {
    const ctx = actionsContext(makeTempDir());
    const { markers } = actionPlaces(ctx.paths);
    mkdirSync(dirname(markers), { recursive: true });
    symlinkSync(markers, markers);
    await expect(hasMarker(ctx, key)).rejects.toThrow(/^cannot read ".*": ELOOP/);
  });

  it('is open until its result is in the outbox', async () => {
    const ctx = actionsContext(makeTempDir());
    expect(await listOpenKeys(ctx)).toEqual([]);
    await makeMarker(ctx, started);
    expect(await listOpenKeys(ctx)).toEqual([key]);
    await tellEnd(ctx, started, { node: 'vps', end, outputTail: 'done' });
    expect(await listOpenKeys(ctx)).toEqual([]);
    const [eventName = '', ...others] = await listResults(ctx);
    expect([eventName, others]).toEqual([
      expect.stringMatching(/^evt-vps-\d{13}-action_result-a\.json$/),
      [],
    ]);
    expect(await readMarker(ctx, key)).toEqual({
      ...started,
      state: { kind: 'reported', ...end, eventName },
    });
    const event = JSON.parse(readFileSync(join(actionPlaces(ctx.paths).outbox, eventName), 'utf8')) as object;
    expect(event).toMatchObject({
      payload: { action_id: 'a', status: 'completed', output_tail: 'done', key },
    });
  });

  it('is kept without a key that names a file elsewhere', async () => {
    const ctx = actionsContext(makeTempDir());
    await expect(makeMarker(ctx, { ...started, key: '../x' })).rejects.toThrow('internal error');
  });
});

describe('a refusal', () => {
  it('is told once, however often it is met', async () => {
    const ctx = actionsContext(makeTempDir());
    const named = { node: 'vps', actionId: 'a', key, actionType: 'redeploy', service: 'web' };
    const refusal = { ...named, reason: 'node is "pi"' };
    expect(await refuseAction(ctx, refusal)).toBe('refused');
    const [name = ''] = await listResults(ctx);
    const event = JSON.parse(readFileSync(join(actionPlaces(ctx.paths).outbox, name), 'utf8')) as object;
    expect(event).toMatchObject({
      ...{ node: 'vps', severity: 'error', service: 'web', correlation_id: 'a' },
      payload: { status: 'failed', exit_code: null, reason: 'rejected: node is "pi"', key },
    });
    await removeResults(ctx, [name]);
    expect(await refuseAction(ctx, refusal)).toBe('known');
    expect([await listResults(ctx), await listOpenKeys(ctx)]).toEqual([[], []]);
  });
});

describe('the outbox', () => {
  it('gives whole results, oldest first, and nothing else', async () => {
    const ctx = actionsContext(makeTempDir());
    const names = [3, 1, 2].map((ms) => `evt-vps-${String(ms).padStart(13, '0')}-action_result-a.json`);
    for (const name of names) await putResult(ctx, { eventName: name, event: '{}\n' });
    writeFileSync(join(actionPlaces(ctx.paths).outbox, '.reeve-0-1-2.tmp'), '');
    writeFileSync(join(actionPlaces(ctx.paths).outbox, 'other.json'), '');
    expect(await listResults(ctx)).toEqual([...names].sort());
  });

  it('names results in the order in which they came, whatever the clock does', async () => {
    let now = new Date(at);
    const root = makeTempDir();
    const ctx = actionsContext(root, () => now);
    const first = await takeEventTime(ctx);
    expect(first).toBe(now.getTime());
    now = new Date(now.getTime() - 3_600_000);
    expect(await takeEventTime(ctx)).toBe(first + 1);
    expect(await takeEventTime(actionsContext(root, () => now))).toBe(first + 2);
    now = new Date(now.getTime() + 7_200_000);
    expect(await takeEventTime(ctx)).toBe(now.getTime());
  });

  it('that nobody has made is empty', async () => {
    const ctx = actionsContext(makeTempDir());
    expect(await listResults(ctx)).toEqual([]);
    await removeResults(ctx, []);
    expect(existsSync(actionPlaces(ctx.paths).outbox)).toBe(false);
  });
});
