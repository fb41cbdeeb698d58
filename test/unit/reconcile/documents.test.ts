import { describe, expect, it } from 'vitest';
import { rolloutsDocument, shardsDocument } from '../../../src/lib/reconcile/documents.ts';

const at = '2026-06-04T03:00:00.000Z';
const written = { fingerprint: 'f', lastWriteAt: at };

describe('shards.json', () => {
  it.each([
    ['of an earlier version', written],
    [
      'with all that this one keeps',
      {
        ...written,
        backends: [{ domain: 'a.example.com', hostPort: 20_000 }],
        left: [{ domain: 'a.example.com', hostPort: 20_001, at }],
        holders: { 'a.example.com': 'blog/web' },
        unseen: true,
      },
    ],
  ])('is read: %s', (_, shard) => {
    expect(shardsDocument.parse({ edges: { 'edge-1': shard } })).toEqual({ edges: { 'edge-1': shard } });
  });

  it.each([
    ['backends that are no list', { backends: {} }],
    ['a port that is none', { left: [{ domain: 'a', hostPort: '20000', at }] }],
    ['a backend that left at no instant', { left: [{ domain: 'a', hostPort: 20_000 }] }],
    ['a backend without a domain', { backends: [{ hostPort: 20_000 }] }],
    ['a holder that is no key', { holders: { a: 1 } }],
    ['a word for a truth', { unseen: 'yes' }],
  ])('is damaged with %s', (_, fields) => {
    expect(() => shardsDocument.parse({ edges: { 'edge-1': { ...written, ...fields } } })).toThrow(
      'edges.edge-1 has the wrong shape',
    );
  });
});

describe('rollouts.json', () => {
  const draining = { phase: 'draining', since: at, drainUntil: at, reason: 'x' };
  const withReplica = (replica: object) => ({
    services: { 'blog/web': { replicas: { launchpad_blog_web_0: replica }, failures: {} } },
  });

  it.each([
    ['of an earlier version', draining],
    ['before the routing is published', { ...draining, drainUntil: null }],
    ['once acknowledged', { ...draining, acknowledgedAt: at }],
  ])('has a drain %s', (_, replica) => {
    expect(rolloutsDocument.parse(withReplica(replica))).toEqual(withReplica(replica));
  });

  it('is damaged with an acknowledgement at no instant', () => {
    expect(() => rolloutsDocument.parse(withReplica({ ...draining, acknowledgedAt: 1 }))).toThrow(
      'services.blog/web has the wrong shape',
    );
  });
});
