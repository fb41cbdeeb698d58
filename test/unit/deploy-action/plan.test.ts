import { describe, expect, it } from 'vitest';
import type { Entry } from '../../../src/lib/actions/entry.ts';
import type { Marker, MarkerState, ReadMarker } from '../../../src/lib/actions/markers.ts';
import type { EntryFact, Facts } from '../../../src/lib/deploy-action/facts.ts';
import { planDeploys } from '../../../src/lib/deploy-action/plan.ts';
import type { Action } from '../../../src/lib/deploy-runner/action.ts';
import { contentKey } from '../../../src/lib/deploy-runner/key.ts';
import type { Hold } from '../../../src/lib/hold/holds.ts';

const at = '2026-06-04T03:00:00.000Z';
const end = { outcome: 'succeeded', endedAt: at, eventName: 'e' } as const;
const nameOf = (text: string) => ({ text, path: Buffer.from(`/inbox/${text}`) });

const anAction = (more: Partial<Action> = {}): Action => ({
  ...{ actionId: 'redeploy-vps-web', type: 'redeploy', node: 'vps', service: 'web', details: {} },
  transitions: [{ to: 'approved', timestamp: 1, by: 'webui' }],
  ...more,
});

function aFact(action: Action, marker?: ReadMarker, hasComposeFile = true, waitedMs = 0): EntryFact {
  const name = nameOf(`${action.actionId}.json`);
  const key = contentKey(action.actionId, 'x');
  return {
    entry: { kind: 'action', name, key, action, bytes: Buffer.alloc(0) },
    marker,
    hasComposeFile,
    waitedMs,
  };
}

const aMarker = (state: MarkerState, actionId = 'redeploy-vps-web'): Marker => ({
  ...{ actionId, key: contentKey(actionId, 'x'), actionType: 'redeploy', service: 'web', run: 'r', state },
});

const facts = (entries: readonly EntryFact[], more: Partial<Facts> = {}): Facts => ({
  ...{ node: 'vps', entries, open: [], services: new Set(['web', 'db']), roomMs: 200_000 },
  ...more,
});

/** Kind and reason. */
const plan = (value: Facts): string[][] => planDeploys(value).map(({ kind, reason }) => [kind, reason]);

describe('planDeploys', () => {
  it('does nothing about an empty inbox', () => expect(planDeploys(facts([]))).toEqual([]));

  it('deploys what is approved for this node, by name and no more (D35)', () => {
    const action = anAction();
    expect(planDeploys(facts([aFact(action)]))).toStrictEqual([
      {
        ...{
          kind: 'deploy',
          key: contentKey(action.actionId, 'x'),
          actionId: action.actionId,
          service: 'web',
        },
        ...{ name: nameOf('redeploy-vps-web.json'), reason: 'approved by webui' },
      },
    ]);
  });

  it.each<[string, EntryFact, Partial<Facts>, string]>([
    [
      'another type (D28)',
      aFact(anAction({ type: 'container-restart' })),
      {},
      'type is "container-restart", not "redeploy"',
    ],
    ['another node (D29)', aFact(anAction({ node: 'pi' })), {}, 'node is "pi", and this is "vps"'],
    [
      'a node in other letters (D29)',
      aFact(anAction({ node: 'VPS' })),
      {},
      'node is "VPS", and this is "vps"',
    ],
    [
      'a service that is not listed (D31)',
      aFact(anAction({ service: 'grafana' })),
      {},
      'service grafana is not in hosts/vps/services.yaml',
    ],
    ['a list that cannot be used (D31)', aFact(anAction()), { services: { problem: 'no list' } }, 'no list'],
    [
      'no compose file (D32)',
      aFact(anAction(), undefined, false),
      {},
      'there is no services/web/docker-compose.yml',
    ],
  ])('refuses %s and runs nothing (D33)', (_, fact, more, reason) => {
    expect(plan(facts([fact], more))).toEqual([['refuse', reason]]);
  });

  it('refuses an action without a service', () => {
    const { service: _, ...rest } = anAction();
    expect(plan(facts([aFact(rest)]))).toEqual([['refuse', 'it names no service']]);
  });

  it.each<[string, ReadMarker, string[][]]>([
    [
      'reported',
      aMarker({ kind: 'reported', ...end }),
      [['forget', `this approval was handled before: succeeded at ${at}`]],
    ],
    ['ended', aMarker({ kind: 'ended', ...end, event: '{}' }), [['report', 'its end was not told']]],
    [
      'started',
      aMarker({ kind: 'started', startedAt: at }),
      [['settle', 'interrupted: the process that ran it is gone']],
    ],
    ['damaged', 'damaged', [['settle', 'its marker is damaged: it may have been done']]],
    ['newer', 'newer', [['leave', 'its marker is of a later reeve, which alone may tell of it']]],
    ['unreadable', 'unreadable', [['leave', 'its marker cannot be read: it may have been done']]],
  ])('never deploys what has a marker that is %s (D36, O70)', (_, marker, expected) => {
    expect(plan(facts([aFact(anAction(), marker)]))).toEqual(expected);
    // Nor if another file of its approval is invalid by now, or the checkout has changed.
    const changed = facts([aFact(anAction(), marker, false)], { services: { problem: 'gone' } });
    expect(plan(changed)).toEqual(expected);
  });

  it('settles what was left half-way and is in the inbox no more', () => {
    const states: [string, ReadMarker][] = [
      ['a', aMarker({ kind: 'started', startedAt: at }, 'a')],
      ['b', aMarker({ kind: 'ended', ...end, event: '{}' }, 'b')],
      ['c', aMarker({ kind: 'reported', ...end }, 'c')],
      ['d', 'damaged'],
      ['e', undefined],
    ];
    const open = states.map(([id, marker]) => ({ key: contentKey(id, 'x'), marker }));
    expect(planDeploys(facts([], { open })).map(({ kind }) => kind)).toEqual([
      ...['settle', 'report', 'close', 'settle'],
    ]);
  });

  it.each<[string, ReadMarker]>([
    ['started', aMarker({ kind: 'started', startedAt: at })],
    ['ended', aMarker({ kind: 'ended', ...end, event: '{}' })],
    ['damaged', 'damaged'],
  ])('takes the file of what is %s out of the inbox as it is told', (_, marker) => {
    const fact = aFact(anAction(), marker);
    const { key, name } = fact.entry as Extract<Entry, { kind: 'action' }>;
    const [step] = planDeploys(facts([fact], { open: [{ key, marker }] }));
    expect(step).toMatchObject({ key, name });
    expect(planDeploys(facts([], { open: [{ key, marker }] }))[0]).not.toHaveProperty('name');
  });

  it('leaves what is not its own to write, and takes its file out of the inbox', () => {
    const action = anAction();
    const fact = aFact(action, 'newer');
    const { key, name } = fact.entry as Extract<Entry, { kind: 'action' }>;
    const open = [{ key, marker: 'newer' as const }];
    const reason = 'its marker is of a later reeve, which alone may tell of it';
    const step = { kind: 'leave', key, actionId: action.actionId, marker: 'newer', reason };
    expect(planDeploys(facts([], { open }))).toStrictEqual([step]);
    expect(planDeploys(facts([fact], { open }))).toStrictEqual([{ ...step, name }]);
    // Others are none of its concern.
    const other = aFact(anAction({ actionId: 'b', service: 'db' }));
    expect(plan(facts([other], { open })).map(([kind]) => kind)).toEqual(['leave', 'deploy']);
  });

  it('settles once what is open and in the inbox as well', () => {
    const marker = aMarker({ kind: 'started', startedAt: at });
    const open = [{ key: marker.key, marker }];
    expect(plan(facts([aFact(anAction(), marker)], { open })).map(([kind]) => kind)).toEqual(['settle']);
  });

  it('begins no deploy of a service whose last one may be at it still, and any of others', () => {
    const started: MarkerState = { kind: 'started', startedAt: at };
    const earlier = { ...aMarker(started, 'earlier'), service: 'web' };
    const entries = [aFact(anAction()), aFact(anAction({ actionId: 'b', service: 'db' }))];
    const open = [{ key: earlier.key, marker: earlier }];
    expect(plan(facts(entries, { open })).map(([kind]) => kind)).toEqual(['settle', 'deploy']);
    const ended = { ...earlier, state: { kind: 'reported', ...end } as const };
    const later = facts(entries, { open: [{ key: earlier.key, marker: ended }] });
    expect(plan(later).map(([kind]) => kind)).toEqual(['close', 'deploy', 'deploy']);
  });

  const hold: Hold = {
    ...{ target: 'node', until: '2026-06-04T05:00:00.000Z', since: at, by: 'ann' },
    reason: 'a new disk',
  };
  const held = 'this node is held until 2026-06-04T05:00:00.000Z, by ann: a new disk';
  const late = 'too late to begin: it has waited 3m 20s';

  it.each<[string, number, Partial<Facts>, string[]]>([
    ['as long as there is time', 200_000, {}, ['deploy', 'approved by webui']],
    ['no longer (D41)', 200_001, {}, ['refuse', late]],
    ['not while the node is held', 200_000, { hold }, ['wait', held]],
    ['no longer while the node is held (D41)', 200_001, { hold }, ['refuse', `${late}, and ${held}`]],
  ])('begins what has waited: %s', (_, waitedMs, more, expected) => {
    expect(plan(facts([aFact(anAction(), undefined, true, waitedMs)], more))).toEqual([expected]);
    // What is wrong with it is what is told, and what was done is done.
    const wrong = aFact(anAction({ node: 'pi' }), undefined, true, waitedMs);
    expect(plan(facts([wrong], more))).toEqual([['refuse', 'node is "pi", and this is "vps"']]);
    const done = aFact(anAction(), aMarker({ kind: 'reported', ...end }), true, waitedMs);
    expect(plan(facts([done], more)).map(([kind]) => kind)).toEqual(['forget']);
  });

  it('does what is quick before the deploys, whatever their names', () => {
    const foreign = (text: string): EntryFact => ({
      entry: { kind: 'foreign', name: nameOf(text), reason: "its name is no action's" } as Extract<
        Entry,
        { kind: 'foreign' }
      >,
    });
    const refused: EntryFact = {
      entry: {
        ...{ kind: 'refused', name: nameOf('z.json'), actionId: 'z', key: contentKey('z', 'x') },
        reason: 'it is a symbolic link',
      },
      marker: undefined,
    };
    const entries = [
      foreign('.part'),
      aFact(anAction({ actionId: 'a' })),
      aFact(anAction({ actionId: 'b', node: 'pi' })),
      aFact(anAction({ actionId: 'c' })),
      foreign('\u001b[31m'),
      refused,
    ];
    expect(plan(facts(entries))).toEqual([
      ['refuse', 'node is "pi", and this is "vps"'],
      ['refuse', 'it is a symbolic link'],
      ['set-aside', '".part" is no name of an action, and so are 1 more'],
      ['deploy', 'approved by webui'],
      ['deploy', 'approved by webui'],
    ]);
  });
});
