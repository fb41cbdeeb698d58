import { describe, expect, it } from 'vitest';
import { nextUpdatedAt } from '../../../src/lib/release/apply.ts';
import { judgeArrival, parseProgress } from '../../../src/lib/release/progress.ts';
import { parseRemovals, planRemovals } from '../../../src/lib/release/removals.ts';

const written = '2026-06-04T03:00:00.000Z';

describe('the arrival of a deploy on a node', () => {
  const awaited = { node: 'web-1', updatedAt: written, keys: new Set(['blog/web']) };
  const failing = { project: 'blog', service: 'web', message: 'pull failed' };
  const other = { project: 'shop', service: 'web', message: 'exit 1' };

  it.each([
    ['has not been told', undefined, { kind: 'waiting', why: 'it has not told how far it is' }],
    ['is not understood', { version: 2 }, { kind: 'waiting', why: 'it has not told how far it is' }],
    ['is of an older state', reeve('2026-06-04T02:59:59.999Z', true), notSeen()],
    ['is of no state', { ...reeve(written, true), desired: null }, notSeen()],
    ['is an edge’s, which has no desired state', edgeDocument(), notSeen()],
    ['is of an unreadable state', reeve('soon', true), notSeen()],
    ['is there', reeve(written, true), { kind: 'converged' }],
    ['is there with a later state', reeve('2026-06-04T03:00:00.001Z', true), { kind: 'converged' }],
    ['is on its way', reeve(written, false), { kind: 'waiting', why: 'it is at work' }],
    ['has failed', reeve(written, false, [other, failing]), { kind: 'failed', failing: [failing] }],
    [
      'is held up by others',
      reeve(written, false, [other]),
      { kind: 'waiting', why: 'it is held up by shop/web (exit 1)' },
    ],
    ['failed with the state before', reeve('2026-06-04T02:00:00.000Z', false, [failing]), notSeen()],
  ])('%s', (_, document, arrival) => {
    expect(judgeArrival(parseProgress(document && JSON.stringify(document)), awaited)).toEqual(arrival);
  });

  it('is not read from what is no document', () => {
    expect([parseProgress('{'), parseProgress('null'), parseProgress(''), parseProgress('[1]')]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('leaves out entries of the list that are none', () => {
    const document = { ...reeve(written, false), failing: [1, null, { project: 'a' }, failing] };
    expect(parseProgress(JSON.stringify(document))?.failing).toEqual([failing]);
  });

  function edgeDocument(): object {
    const edge = { balancer: 'haproxy', applied: { 'web-1': 'f' }, rejected: [], repairs: 0 };
    return {
      ...reeve(written, true, [{ project: '', service: '', message: 'caddy: down' }]),
      desired: null,
      edge,
    };
  }

  function notSeen(): unknown {
    return { kind: 'waiting', why: 'it has not seen the new desired state yet' };
  }
});

describe('announced removals', () => {
  const announcedAt = '2026-06-04T03:00:00.000Z';
  const previous = {
    version: 1 as const,
    announcedAt: '2026-06-04T02:00:00.000Z',
    services: ['blog/a', 'blog/b'],
  };
  const none: ReadonlySet<string> = new Set();

  it.each([
    ['are these, at first', undefined, undefined, ['blog/x'], none, ['blog/x']],
    ['are these and earlier ones', previous, undefined, ['blog/x'], none, ['blog/a', 'blog/b', 'blog/x']],
    [
      'are without what is there again',
      previous,
      undefined,
      ['blog/x'],
      new Set(['blog/a']),
      ['blog/b', 'blog/x'],
    ],
    [
      'are without earlier ones once the node has performed them',
      previous,
      { desiredUpdatedAt: '2026-06-04T02:00:00.000Z', converged: true, failing: [] },
      ['blog/x'],
      none,
      ['blog/x'],
    ],
    [
      'keep earlier ones that the node has not got to',
      previous,
      { desiredUpdatedAt: '2026-06-04T01:00:00.000Z', converged: true, failing: [] },
      ['blog/x'],
      none,
      ['blog/a', 'blog/b', 'blog/x'],
    ],
    [
      'keep earlier ones that the node has not finished',
      previous,
      { desiredUpdatedAt: '2026-06-04T02:30:00.000Z', converged: false, failing: [] },
      [],
      none,
      ['blog/a', 'blog/b'],
    ],
  ])('%s', (_, before, progress, removed, present, services) => {
    expect(planRemovals({ previous: before, progress, removed, present, announcedAt })).toEqual({
      version: 1,
      announcedAt,
      services,
    });
  });

  it('that cannot be read are none', () => {
    expect([parseRemovals('{'), parseRemovals('{"version":2}'), parseRemovals('null')]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(parseRemovals('{"version":1,"announcedAt":"x","services":["a/b",1]}')).toEqual({
      version: 1,
      announcedAt: 'x',
      services: ['a/b'],
    });
  });
});

describe('the instant of a new document', () => {
  it.each([
    ['now', '2026-06-04T02:00:00.000Z', written],
    ['after an earlier one of the same instant', written, '2026-06-04T03:00:00.001Z'],
    ['after one of a clock that is ahead', '2026-06-04T04:00:00.000Z', '2026-06-04T04:00:00.001Z'],
    ['now, where the earlier one has none', 'yesterday', written],
    ['now, at first', '', written],
  ])('is %s', (_, previous, expected) => {
    expect(nextUpdatedAt(previous, new Date(written))).toBe(expected);
  });
});

function reeve(updatedAt: string, converged: boolean, failing: unknown[] = []): Record<string, unknown> {
  return { version: 1, nodeId: 'web-1', desired: { updatedAt }, converged, failing, draining: [] };
}
