import { describe, expect, it } from 'vitest';
import type { Entry } from '../../../src/lib/actions/entry.ts';
import type { Action } from '../../../src/lib/deploy-runner/action.ts';
import { contentKey } from '../../../src/lib/deploy-runner/key.ts';
import type { PulledEntry, PullFacts } from '../../../src/lib/rsync-pull/facts.ts';
import { planPull } from '../../../src/lib/rsync-pull/plan.ts';

const bytes = Buffer.from('{}');
const none = { actions: 0, results: 0, refused: 0 };

function nameOf(text: string): Entry['name'] {
  return { text, path: Buffer.from(`/staging/${text}`) };
}

function action(
  id: string,
  over: Partial<PulledEntry> = {},
  transitions: Action['transitions'] = [],
): PulledEntry {
  const fields = { actionId: id, type: 'redeploy', node: 'web-1', details: {}, transitions };
  const entry = {
    kind: 'action' as const,
    name: nameOf(`${id}.json`),
    key: contentKey(id, bytes),
    action: fields,
    bytes,
  };
  return { entry, isKnown: false, isWaiting: false, ...over };
}

function refused(id: string, over: Partial<PulledEntry> = {}): PulledEntry {
  const about = { actionId: id, key: contentKey(id, 'x'), reason: 'it is not whole JSON' };
  return {
    entry: { kind: 'refused', name: nameOf(`${id}.json`), ...about },
    ...{ isKnown: false, isWaiting: false, ...over },
  };
}

function foreign(text: string, reason = "its name is no action's"): PulledEntry {
  return { entry: { kind: 'foreign', name: nameOf(text), reason }, isKnown: false, isWaiting: false };
}

function plan(over: Partial<PullFacts>): ReturnType<typeof planPull> {
  const { entries = [] } = over;
  const seen = new Set(entries.map(({ entry }) => entry.name.text));
  return planPull({ entries, left: [], seen, listed: undefined, waiting: none, ...over });
}

describe('a plan of a pull', () => {
  it('is empty where there is nothing', () => {
    expect(plan({ listed: new Set() })).toEqual({ steps: [], strays: [], postponed: 0, keys: new Set() });
  });

  it('hands over what was never begun, as it is, and says who has approved it', () => {
    const approval = { to: 'approved', timestamp: 1_780_000_000, by: 'operator-ann' };
    expect(plan({ entries: [action('a', {}, [approval])] }).steps).toEqual([
      {
        kind: 'hand-over',
        name: 'a.json',
        key: contentKey('a', bytes),
        bytes,
        reason: 'approved by operator-ann, and never begun here',
      },
    ]);
  });

  it.each([
    ['was begun', { isKnown: true }],
    ['waits', { isWaiting: true }],
  ])('leaves what %s', (_, over) => {
    const entries = [action('a', over), refused('b', over)];
    expect(plan({ entries, listed: new Set(['a.json', 'b.json']) }).steps).toEqual([]);
  });

  it('refuses what stands under an action’s name and is none (D45)', () => {
    expect(plan({ entries: [refused('a')] })).toEqual({
      steps: [
        {
          ...{ kind: 'refuse', name: 'a.json', actionId: 'a', key: contentKey('a', 'x') },
          reason: 'it is not whole JSON',
        },
      ],
      ...{ strays: [], postponed: 0, keys: new Set([contentKey('a', 'x')]) },
    });
  });

  it('forgets what is no longer at the source, where the list is whole', () => {
    const entries = [action('a', { isKnown: true }), action('b', { isKnown: true })];
    expect(plan({ entries, listed: new Set(['b.json']) }).steps).toEqual([
      { kind: 'drop', path: Buffer.from('/staging/a.json'), reason: 'it is no longer at the source' },
    ]);
    expect(plan({ entries, listed: undefined }).steps).toEqual([]);
  });

  it.each([
    ['gone at the source', new Set(['b.json']), ['drop', 'drop']],
    ['not seen there while the link is down', undefined, []],
  ])(
    'hands over and refuses nothing that is %s, whatever a killed pull has left here (D2, D41)',
    (_, listed, kinds) => {
      const { steps, postponed } = plan({
        entries: [action('a'), refused('c')],
        ...{ seen: new Set<string>(), listed },
      });
      expect(steps.map(({ kind }) => kind)).toEqual(kinds);
      expect(postponed).toBe(0);
    },
  );

  it('tells of what is no action, and keeps none of it', () => {
    const { steps, strays } = plan({ entries: [foreign('README'), foreign('.a.json.Ab12cd')] });
    expect(steps.map(({ kind }) => kind)).toEqual(['drop', 'drop']);
    expect(strays).toEqual([{ name: 'README', reason: "its name is no action's" }]);
  });

  it('tells of what was left at the source, and refuses it where somebody waits for it', () => {
    const left = [
      { name: 'b.json', reason: 'it is too large', mark: '- 99999 at noon' },
      { name: 'A.json', reason: 'it is too large' },
    ];
    const keyOfB = contentKey('b', 'left: it is too large: - 99999 at noon');
    expect(plan({ left, listed: new Set() })).toEqual({
      steps: [
        {
          ...{ kind: 'refuse', name: 'b.json', actionId: 'b', reason: 'it is too large' },
          key: keyOfB,
        },
      ],
      strays: [left[1], { name: 'b.json', reason: 'it is too large' }],
      ...{ postponed: 0, keys: new Set([keyOfB]) },
    });
  });

  it('refuses another one of the same name again, and nothing that nobody could look at', () => {
    const keyOf = (mark: string): unknown =>
      plan({ left: [{ name: 'b.json', reason: 'it is too large', mark }] }).steps;
    expect(keyOf('- 99999 at noon')).not.toEqual(keyOf('- 99999 at one'));
    expect(keyOf('- 99999 at noon')).not.toEqual(keyOf('- 99998 at noon'));
    expect(plan({ left: [{ name: 'b.json', reason: 'it is too large' }] }).steps).toEqual([]);
  });

  it('tells of a directory once, although it is in the mirror as well', () => {
    const { steps, strays } = plan({
      entries: [foreign('a.json', 'it is a directory')],
      left: [{ name: 'a.json', reason: 'it is a directory', mark: 'd 0 at noon' }],
    });
    expect(steps.map(({ kind }) => kind)).toEqual(['refuse', 'drop']);
    expect(strays).toEqual([{ name: 'a.json', reason: 'it is a directory' }]);
  });

  describe('of too much', () => {
    const ids = Array.from({ length: 700 }, (_, index) => `a-${1000 + index}`);
    const kinds = (over: Partial<PullFacts>): [number, number, number] => {
      const { steps, postponed } = plan(over);
      const count = (kind: string): number => steps.filter((step) => step.kind === kind).length;
      return [count('hand-over'), count('refuse'), postponed];
    };
    const actions = ids.map((id) => action(id));
    const refusals = ids.map((id) => refused(id));

    it('hands over no more than 500, with those that wait', () => {
      expect(kinds({ entries: actions })).toEqual([500, 0, 200]);
      expect(kinds({ entries: actions, waiting: { ...none, actions: 499 } })).toEqual([1, 0, 699]);
      expect(kinds({ entries: actions, waiting: { ...none, actions: 900 } })).toEqual([0, 0, 700]);
    });

    it('refuses no more than 200 at a time, and those first that were not refused before', () => {
      expect(kinds({ entries: refusals })).toEqual([0, 200, 500]);
      const left = ids.map((id, index) => ({
        ...{ name: `${id}.json`, reason: 'it is too large', mark: '- 99999 at noon' },
        isKnown: index < 600,
      }));
      expect(kinds({ left })).toEqual([0, 100, 0]);
    });

    it('takes nothing that makes a result while 500 of them have not left', () => {
      const waiting = { ...none, results: 500 };
      expect(kinds({ entries: [...actions, ...refusals], waiting })).toEqual([0, 0, 1400]);
      expect(kinds({ entries: [...actions, ...refusals], waiting: { ...none, results: 499 } })).toEqual([
        500, 200, 700,
      ]);
    });

    it('takes nothing more on a day on which 2000 were refused', () => {
      const entries = [...actions, ...refusals];
      expect(kinds({ entries, waiting: { ...none, refused: 2000 } })).toEqual([0, 0, 1400]);
      expect(kinds({ entries, waiting: { ...none, refused: 1999 } })).toEqual([500, 200, 700]);
    });

    it('knows of all that is there', () => {
      expect(plan({ entries: [...actions, ...refusals] }).keys.size).toBe(1400);
    });
  });
});
