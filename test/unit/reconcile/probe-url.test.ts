import { describe, expect, it } from 'vitest';
import { probeUrl } from '../../../src/lib/reconcile/plan-replica.ts';
import { aWebService } from '../../support/builders.ts';
import { World } from '../../support/world.ts';

describe('a replica is probed', () => {
  it.each([
    ['127.0.0.1', 'http://127.0.0.1:20000/healthz'],
    ['10.0.0.5', 'http://10.0.0.5:20000/healthz'],
    ['::1', 'http://[::1]:20000/healthz'],
  ])('at %s under %s', (probeHost, url) => {
    const world = new World();
    const service = aWebService();
    const replica = world.add(service, 0);
    const facts = world.facts();
    const found = probeUrl({ ...facts, node: { ...facts.node, probeHost } }, service, replica);
    expect([found, URL.canParse(found ?? '')]).toEqual([url, true]);
  });
});
