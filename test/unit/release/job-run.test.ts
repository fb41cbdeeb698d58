import { expect, it } from 'vitest';
import { parseDeployFile } from '../../../src/lib/release/parse.ts';

const defaults = { clusterId: 'default', defaultEdge: undefined, backups: 'file:///var/backups/reeve' };

const parse = (requestedAt: string) =>
  parseDeployFile(
    `services: [{ project: a, service: b, image: x:1, nodes: [n-1], jobRun: { id: m, requestedAt: ${requestedAt} } }]`,
    'f.yaml',
    defaults,
  );

it('a one-off run is asked for at an instant, which other readers of the store parse', () => {
  const requestedAt = '2026-06-04T03:00:00.000Z';
  expect(parse(requestedAt).services[0]?.service.jobRun).toEqual({ id: 'm', requestedAt });
  expect(() => parse('yesterday')).toThrow(
    'services[0].jobRun.requestedAt must be an instant such as 2026-06-04T03:00:00Z, not "yesterday"',
  );
});
