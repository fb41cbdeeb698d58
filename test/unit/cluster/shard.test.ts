import { describe, expect, it } from 'vitest';
import { parseWireDuration } from '../../../src/lib/cluster/duration.ts';
import { buildShards, type ShardInput } from '../../../src/lib/cluster/shard.ts';
import { aService, aWebService } from '../../support/builders.ts';

describe('the shards of a node', () => {
  it('hold the serving replicas with a port, sorted, with the path they are probed at (L26)', () => {
    const services = [
      aWebService(),
      aWebService({
        service: 'api',
        ingress: { domain: 'api.example.com', port: 80, edge: 'edge-1' },
        healthCheck: null,
      }),
      aService({ service: 'worker' }),
    ];
    const replicas = [
      { project: 'blog', service: 'web', hostPort: 20002 },
      { project: 'blog', service: 'web', hostPort: 20001 },
      { project: 'blog', service: 'api', hostPort: 20003 },
      { project: 'blog', service: 'worker', hostPort: 20004 },
      { project: 'gone', service: 'web', hostPort: 20005 },
    ];
    expect(build({ services, replicas })).toEqual({
      'edge-1': {
        nodeId: 'web-1',
        privateIp: '10.0.0.5',
        updatedAt: 'now',
        backends: [
          { domain: 'api.example.com', hostPort: 20003 },
          { domain: 'blog.example.com', hostPort: 20001, healthPath: '/healthz' },
          { domain: 'blog.example.com', hostPort: 20002, healthPath: '/healthz' },
        ],
      },
    });
  });

  it('of an edge without a live replica is there and empty', () => {
    expect(build({ services: [aWebService()] })).toEqual({ 'edge-1': anEmptyShard() });
  });

  it('of an edge that is named no more is emptied, so that it routes to no dead port (L26)', () => {
    const services = [aWebService({ ingress: { domain: 'a.example.com', port: 80, edge: 'edge-2' } })];
    const replicas = [{ project: 'blog', service: 'web', hostPort: 20001 }];
    expect(build({ services, replicas, publishedEdges: ['edge-1', 'edge-2'] })).toEqual({
      'edge-1': anEmptyShard(),
      'edge-2': {
        ...anEmptyShard(),
        backends: [{ domain: 'a.example.com', hostPort: 20001, healthPath: '/healthz' }],
      },
    });
  });

  it('are emptied, too, when the last web service is removed', () => {
    expect(build({ publishedEdges: ['edge-1'] })).toEqual({ 'edge-1': anEmptyShard() });
  });

  it('are none where nothing was ever routed', () => {
    expect(build({ services: [aService()] })).toEqual({});
  });
});

describe('a duration in desired.json', () => {
  it.each([
    ['250ms', 250],
    ['20s', 20_000],
    ['5m', 300_000],
    ['0s', 0],
    ['1h', 0],
    ['1.5s', 0],
    ['-1s', 0],
    ['20', 0],
    ['', 0],
    [' 20s', 0],
    ['1m30s', 0],
  ])('%j is %i ms', (text, ms) => {
    expect(parseWireDuration(text)).toBe(ms);
  });
});

function build(overrides: Partial<ShardInput>): Record<string, unknown> {
  const input = {
    nodeId: 'web-1',
    privateIp: '10.0.0.5',
    updatedAt: 'now',
    services: [],
    replicas: [],
    publishedEdges: [],
  };
  return Object.fromEntries(buildShards({ ...input, ...overrides }));
}

function anEmptyShard(): { nodeId: string; privateIp: string; updatedAt: string; backends: unknown[] } {
  return { nodeId: 'web-1', privateIp: '10.0.0.5', updatedAt: 'now', backends: [] };
}
