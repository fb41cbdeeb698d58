import { describe, expect, it } from 'vitest';
import type { DesiredService } from '../../../src/lib/cluster/wire.ts';
import { findEarlier, planRollback } from '../../../src/lib/release/plan-rollback.ts';
import { parseRawDesired, type RawService, renderService } from '../../../src/lib/release/raw-document.ts';
import { aDesired, aService } from '../../support/builders.ts';

const one = aService({ image: 'img:1' });
const two = aService({ image: 'img:2' });
const three = aService({ image: 'img:3' });

describe('the earlier definition of a service', () => {
  it.each([
    ['is the last one', three, [two, one], 1, two],
    ['is the one before that', three, [two, one], 2, one],
    ['passes over deploys of the same definition', two, [two, two, one, one], 1, one],
    ['counts a definition that came back once', two, [one, two, one], 1, one],
    ['passes over deploys that only restarted it', two, [{ ...two, restartAt: 'x' }, one], 1, one],
    ['passes over deploys that did not have it', two, [aService({ service: 'other' }), one], 1, one],
    ['is none where there are not that many', three, [two, one], 3, undefined],
    ['is none without history', three, [], 1, undefined],
  ])('%s', (_, present, earlier, to, definition) => {
    const deploys = earlier.map((service, age) => ({ updatedAt: `${age}`, services: raws(service) }));
    expect(findEarlier(renderService(present), deploys, to)?.definition).toEqual(definition);
  });

  it('carries the instant of its deploy', () => {
    const deploys = [
      { updatedAt: '2026-06-04T00:00:00.000Z', services: raws(two) },
      { updatedAt: '2026-06-03T00:00:00.000Z', services: raws(one) },
    ];
    expect(findEarlier(renderService(two), deploys, 1)).toEqual({
      updatedAt: '2026-06-03T00:00:00.000Z',
      definition: one,
    });
  });

  it('is never one that cannot run', () => {
    const broken = { project: 'blog', service: 'web', cpu: -1 };
    const deploys = [
      { updatedAt: '2', services: [renderService(broken)] },
      { updatedAt: '1', services: raws(one) },
    ];
    expect(findEarlier(renderService(two), deploys, 1)?.definition).toEqual(one);
  });
});

describe('what a rollback makes of a node', () => {
  const other = aService({ service: 'other' });

  it('is the earlier definition in its place, with everything else as it was', () => {
    const document = parseRawDesired(JSON.stringify(aDesired([two, other])), 'd');
    expect(planRollback(document, 'blog/web', one)).toEqual({
      services: [renderService(one), document.services[1]],
      changes: [{ action: 'change', project: 'blog', service: 'web', fields: ['image img:2 -> img:1'] }],
    });
  });

  it('keeps the present restart', () => {
    const document = parseRawDesired(JSON.stringify(aDesired([{ ...two, restartAt: 'now' }])), 'd');
    const { services } = planRollback(document, 'blog/web', { ...one, restartAt: 'then' });
    expect(services.map(({ value }) => value)).toEqual([{ ...one, restartAt: 'now' }]);
  });

  it.each([
    ['is there already', [one]],
    ['is gone meanwhile', [other]],
  ])('is nothing where it %s', (_, services: DesiredService[]) => {
    const document = parseRawDesired(JSON.stringify(aDesired(services)), 'd');
    expect(planRollback(document, 'blog/web', one)).toEqual({ services: document.services, changes: [] });
  });
});

function raws(service: DesiredService): RawService[] {
  return [renderService(service)];
}
