import { describe, expect, it } from 'vitest';
import { parseDeployFile } from '../../../src/lib/release/parse.ts';

const defaults = { clusterId: 'default', defaultEdge: undefined, backups: 'file:///var/backups/reeve' };

function parseRetention(retention: string): unknown {
  const text = `services:
  - project: blog
    service: db
    image: postgres:15
    nodes: [web-1]
    database: { engine: postgres, version: "15" }
    backup: { schedule: "0 3 * * *", retentionDays: 7, retention: ${retention} }
`;
  return parseDeployFile(text, 'f.yaml', defaults).services[0]?.service.backup?.retention;
}

describe('retention in a deploy file', () => {
  it('may have any of the tiers, and a minimum', () => {
    const retention = { last: 3, daily: 7, weekly: 5, monthly: 12, yearly: 10, minimum: 2 };
    expect(parseRetention(JSON.stringify(retention))).toEqual(retention);
    expect(parseRetention('{ minimum: 3 }')).toEqual({ minimum: 3 });
  });

  const place = 'services[0].backup.retention';
  it.each([
    ['a typing mistake', '{ dayly: 7 }', `unknown key "dayly" in ${place}: did you mean "daily"?`],
    ['no tier at all', '{}', `${place} must be a mapping with at least one tier`],
    ['none of a tier', '{ daily: 0 }', `${place}.daily must be at least 1, not the number 0`],
    ['less than none', '{ minimum: -1 }', `${place}.minimum must be at least 1, not the number -1`],
    ['a unit', '{ last: 7x }', `${place}.last must be a number, not "7x"`],
    ['half a one', '{ weekly: 0.5 }', `${place}.weekly must be a whole number, not the number 0.5`],
    ['an empty text', '{ yearly: "" }', `${place}.yearly must be a number, not ""`],
    ['no value', '{ monthly: }', `${place}.monthly must be a number, not null`],
  ])('is refused with %s (O30)', (_, retention, problem) => {
    expect(() => parseRetention(retention)).toThrow(problem);
  });
});
