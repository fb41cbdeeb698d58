// What is dispatched, what ends and what waits, without a file.
import type { Stats } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Reported } from '../../../src/lib/action/facts.ts';
import { planDispatch, planSettle } from '../../../src/lib/action/plan.ts';
import { type Found, type FoundAction, renderClock } from '../../../src/lib/actions/control/found.ts';
import { parseAction } from '../../../src/lib/deploy-runner/action.ts';
import { markerKey } from '../../../src/lib/deploy-runner/key.ts';
import type { ActionState } from '../../../src/lib/deploy-runner/layout.ts';
import type { Moment } from '../../../src/lib/host/moment.ts';

const startSeconds = 1_780_000_000;
const at = (seconds: number): Date => new Date((startSeconds + seconds) * 1000);
const about = (seconds = 0): Stats =>
  ({ mtimeMs: at(seconds).getTime(), ctimeMs: at(seconds).getTime() }) as Stats;
const approval = { from: 'pending', to: 'approved', timestamp: startSeconds - 60, by: 'webui' };
const dispatch = { from: 'approved', to: 'running', timestamp: startSeconds, by: 'system' };

function found(state: ActionState, fields: Record<string, unknown> = {}): FoundAction {
  const document = {
    ...{ action_id: 'redeploy-a-b', type: 'redeploy', node: 'a', service: 'b' },
    transition_history: state === 'running' ? [approval, dispatch] : [approval],
    ...fields,
  };
  const bytes = Buffer.from(JSON.stringify(document));
  return { kind: 'action', state, id: document.action_id, action: parseAction(bytes), bytes, about: about() };
}

const unread = (state: ActionState, isFile: boolean): Found =>
  isFile
    ? {
        kind: 'refused',
        state,
        id: 'x',
        reason: 'it is empty',
        isFile,
        bytes: Buffer.from(''),
        about: about(),
      }
    : { kind: 'refused', state, id: 'x', reason: 'it is a pipe', isFile };

const keyOf = ({ action, bytes }: FoundAction): string => markerKey(action, bytes);

function reported(fields: Partial<Reported['result']> & { arrived?: number; name?: string } = {}): Reported {
  const { arrived = 30, name = 'evt', ...result } = fields;
  return {
    ...{ name, arrivedAtMs: at(arrived).getTime() },
    result: {
      ...{ node: 'a', actionId: 'redeploy-a-b', actionType: 'redeploy', status: 'completed' },
      ...{ finishedAt: at(30).toISOString(), ...result },
    },
  };
}

describe('planDispatch', () => {
  const plan = (approved: Found[], running: string[] = [], ended: string[] = []) =>
    planDispatch({
      approved,
      running: new Set(running),
      ended: new Map([['redeploy-a-b', new Set(ended)]]),
    }).map(({ found: _, ...step }) => step);

  it('has nothing to do where nothing is approved', () => {
    expect(plan([])).toStrictEqual([]);
  });

  it('D4 gives an approved redeploy to its node under the key of its approval', () => {
    const one = found('approved');
    expect(plan([one])).toStrictEqual([{ kind: 'dispatch', key: keyOf(one), reason: 'approved by webui' }]);
    const bare = found('approved', { transition_history: [] });
    expect(plan([bare])).toStrictEqual([{ kind: 'dispatch', key: keyOf(bare), reason: 'approved' }]);
  });

  const ended = 'this very approval has been carried out before: it has to be approved anew';
  it.each<[string, Found, string[], string[], object[]]>([
    ["another type is another executor's", found('approved', { type: 'disk_cleanup' }), [], [], []],
    [
      'R37 one of the same id that is running comes first',
      found('approved'),
      ['redeploy-a-b'],
      [],
      [{ kind: 'wait', reason: 'an earlier one of this id is running' }],
    ],
    [
      'without a service it has failed',
      found('approved', { service: null }),
      [],
      [],
      [{ kind: 'refuse', to: 'failed', reason: 'it names no service' }],
    ],
    [
      'the same approval is not carried out again',
      found('approved'),
      [],
      [keyOf(found('approved'))],
      [{ kind: 'refuse', to: 'rejected', reason: ended }],
    ],
    [
      'D42 another approval is',
      found('approved'),
      [],
      [keyOf(found('approved', { transition_history: [{ ...approval, timestamp: 1 }] }))],
      [{ kind: 'dispatch', key: keyOf(found('approved')), reason: 'approved by webui' }],
    ],
    [
      'what is no action has failed',
      unread('approved', true),
      [],
      [],
      [{ kind: 'refuse', to: 'failed', reason: 'it is empty' }],
    ],
    [
      'what is no file stays',
      unread('approved', false),
      [],
      [],
      [{ kind: 'wait', reason: 'it is a pipe', isTrouble: true }],
    ],
    [
      'what would grow too large has failed',
      found('approved', { note: 'x'.repeat(60_000) }),
      [],
      [],
      [{ kind: 'refuse', to: 'failed', reason: expect.stringContaining('too large') }],
    ],
  ])('%s', (_, one, running, keys, steps) => {
    expect(plan([one], running, keys)).toStrictEqual(steps);
  });
});

describe('planSettle', () => {
  const plan = (running: Found[], now: Date, results: Reported[] = [], boot?: Moment['boot']) =>
    planSettle(
      { running, reported: new Map([['redeploy-a-b', results]]), unread: new Map(), timeoutMs: 900_000 },
      { atMs: now.getTime(), ...(boot === undefined ? {} : { boot }) },
    ).map(({ found: _, ...step }) => step);
  const running = found('running');
  const key = keyOf(running);
  const waits = (words: string): object => ({
    kind: 'wait',
    reason: `node a has not reported yet, after ${words}`,
  });

  it('has nothing to do where nothing is running', () => {
    expect(plan([], at(0))).toStrictEqual([]);
  });

  it.each<[string, Reported[], string]>([
    ['its own result', [reported({ key })], 'completed'],
    ['its own, whenever it seems to have come', [reported({ key, arrived: -9000 })], 'completed'],
    ['one without a key that has come after it', [reported({ arrived: 1 })], 'completed'],
    ['a failure', [reported({ key, status: 'failed', exitCode: 3 })], 'failed'],
    ['the first of two', [reported({ key, status: 'failed' }), reported({ key })], 'failed'],
    [
      "its own behind another approval's",
      [reported({ key: 'x', status: 'failed' }), reported({ key })],
      'completed',
    ],
  ])('D11 ends by %s', (_, results, to) => {
    expect(plan([running], at(60), results)).toMatchObject([{ kind: 'finish', to }]);
  });

  it.each<[string, Reported[]]>([
    ['no result', []],
    ["another approval's", [reported({ key: `redeploy-a-b-${'0'.repeat(64)}` })]],
    ["another node's", [reported({ key, node: 'b' })]],
    ['one without a key that came before it', [reported({ arrived: -0.001 }), reported({ arrived: -5 })]],
  ])('D11 D42 waits with %s', (_, results) => {
    expect(plan([running], at(60), results)).toStrictEqual([waits('1m')]);
  });

  it('D40 gives up at 900 s and not a moment before', () => {
    expect(plan([running], at(899.999))).toStrictEqual([waits('15m')]);
    expect(plan([running], at(900))).toStrictEqual([
      { kind: 'finish', to: 'failed', reason: 'node a has reported nothing for 15m' },
    ]);
    // What has come by then counts.
    expect(plan([running], at(9000), [reported({ key })])).toMatchObject([{ to: 'completed' }]);
  });

  it('D40 says why, where there may be a result that it could not read', () => {
    const settle = (seconds: number, results: Reported[] = []) =>
      planSettle(
        {
          ...{ running: [running], reported: new Map([['redeploy-a-b', results]]) },
          ...{ unread: new Map([['a', 'cannot open "a"']]), timeoutMs: 900_000 },
        },
        { atMs: at(seconds).getTime() },
      ).map(({ found: _, ...step }) => step);
    expect(settle(60)).toStrictEqual([{ kind: 'wait', reason: 'cannot open "a"', isTrouble: true }]);
    expect(settle(60, [reported({ key })])).toMatchObject([{ kind: 'finish', to: 'completed' }]);
    const reason = 'node a has reported nothing for 15m that can be read: cannot open "a"';
    expect(settle(900)).toStrictEqual([{ kind: 'finish', to: 'failed', reason }]);
  });

  it('waits where the clock was set back, and tells people where that is much', () => {
    expect(plan([running], at(-60))).toStrictEqual([waits('0ms')]);
    const behind = "and this machine's clock is 1h behind the time at which it was asked to";
    expect(plan([running], at(-3600))).toStrictEqual([
      { kind: 'wait', reason: `node a has not reported yet, ${behind}`, isTrouble: true },
    ]);
  });

  it('D40 counts its own dispatches by the clock that nobody sets, as long as the machine is up', () => {
    const clock = renderClock({ atMs: at(0.25).getTime(), boot: { id: 'b', uptimeMs: 5000 } });
    const own = found('running', { transition_history: [approval, { ...dispatch, clock }] });
    const later = (seconds: number, now: Date, id = 'b') =>
      plan([own], now, [], { id, uptimeMs: 5000 + seconds * 1000 });
    const given = [{ kind: 'finish', to: 'failed', reason: 'node a has reported nothing for 15m' }];
    expect(later(60, at(3600))).toStrictEqual([waits('1m')]);
    expect(later(60, at(-86_400))).toStrictEqual([waits('1m')]);
    expect(later(899.999, at(-86_400))).toStrictEqual([waits('15m')]);
    expect(later(900, at(-86_400))).toStrictEqual(given);
    // Nobody knows how long it was down, and its node could report nothing meanwhile.
    expect(later(890, at(99_999), 'c')).toStrictEqual([waits('14m 55s')]);
    expect(later(895, at(0), 'c')).toStrictEqual(given);
  });

  it.each([
    ['our own, by the millisecond', { clock: renderClock({ atMs: at(0.25).getTime() }) }, 9, 0.25],
    ["another executor's, within the second that it wrote down, by its file", {}, 0.25, 0.25],
    ["another executor's that was touched since, past that second", {}, 5, 1],
    ["another executor's by its own fractions", { timestamp: startSeconds + 0.5 }, 9, 0.5],
    ["another executor's in text", { timestamp: at(0.5).toISOString() }, 9, 0.5],
  ])('D11 D42 takes results without a key from its dispatch on: %s', (_, fields, touched, first) => {
    const one = {
      ...found('running', { transition_history: [approval, { ...dispatch, ...fields }] }),
      about: about(touched),
    };
    const settle = (arrived: number) => plan([one], at(60), [reported({ arrived })])[0]?.kind;
    expect([settle(first - 0.01), settle(first)]).toStrictEqual(['wait', 'finish']);
  });

  it.each<[string, number | string, string]>([
    ['an instant as text', at(-30).toISOString(), '1m 30s'],
    ['an instant as text without a zone, which is UTC', at(-30).toISOString().slice(0, -1), '1m 30s'],
    ['no instant', 'yesterday', '1m'],
    ['a number that is no time', 1e300, '1m'],
    ['a time to come', startSeconds + 3600, '1m'],
  ])('D40 counts from what another executor wrote down: %s', (_, timestamp, waited) => {
    const one = found('running', { transition_history: [approval, { ...dispatch, timestamp }] });
    expect(plan([one], at(60))).toStrictEqual([waits(waited)]);
  });

  it('D40 believes no file that is to come, but for when it came there', () => {
    const touched = { mtimeMs: at(9_000_000).getTime(), ctimeMs: at(0).getTime() } as Stats;
    const unreadable = { ...unread('running', true), about: touched } as Found;
    expect(plan([unreadable], at(900))).toMatchObject([{ kind: 'refuse', to: 'failed' }]);
    const bare = { ...found('running', { transition_history: [] }), about: touched };
    expect(plan([bare], at(900))).toMatchObject([{ kind: 'finish', to: 'failed' }]);
  });

  it('says how it ended', () => {
    const steps = plan([running], at(60), [
      reported({ key, status: 'failed', exitCode: 3, reason: 'no image' }),
    ]);
    expect(steps).toMatchObject([{ reason: 'node a reports failed, exit code 3: no image' }]);
  });

  it('takes the key that was written down, when the file names no approval', () => {
    const bare = found('running', { transition_history: [{ ...dispatch, key: 'k-1' }] });
    expect(plan([bare], at(60), [reported({ key: 'k-2' })])).toStrictEqual([waits('1m')]);
    expect(plan([bare], at(60), [reported({ key: 'k-1' })])).toMatchObject([{ to: 'completed' }]);
  });

  it('counts from the last change, or from the file, where nobody wrote down when it was dispatched', () => {
    const moved = found('running', { transition_history: [], updated_at: startSeconds - 1000 });
    expect(plan([moved], at(0))).toMatchObject([{ kind: 'finish', to: 'failed' }]);
    const bare = found('running', { transition_history: [] });
    expect(plan([bare], at(899))).toMatchObject([{ kind: 'wait' }]);
    expect(plan([bare], at(901))).toMatchObject([{ kind: 'finish' }]);
  });

  it('leaves other types alone, and ends what cannot be read when its time is over', () => {
    expect(plan([found('running', { type: 'container_restart' })], at(9000))).toStrictEqual([]);
    expect(plan([unread('running', true)], at(60))).toStrictEqual([{ kind: 'wait', reason: 'it is empty' }]);
    expect(plan([unread('running', true)], at(900))).toMatchObject([{ kind: 'refuse', to: 'failed' }]);
    expect(plan([unread('running', false)], at(900))).toMatchObject([{ kind: 'wait', isTrouble: true }]);
  });
});
