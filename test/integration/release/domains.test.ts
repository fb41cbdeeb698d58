// A domain that another service has, as an operator meets it. (R48)
import { describe, expect, it } from 'vitest';
import type { DesiredService } from '../../../src/lib/cluster/wire.ts';
import { aDesired, aWebService } from '../../support/builders.ts';
import { createOperator, type Operator } from '../../support/operator.ts';

const at = (domain: string, edge = 'edge-1') => ({ domain, port: 8080, edge });

function aFile(domain: string, edge = 'edge-1'): string {
  const service = { project: 'blog', service: 'web', image: 'img:1', nodes: ['web-1', 'web-2'] };
  return JSON.stringify({ services: [{ ...service, ingress: at(domain, edge) }] });
}

/** `shop/web` has the domain on two other nodes. */
function aCluster(domain: string): Operator {
  const operator = createOperator(['web-1', 'web-2', 'web-3', 'web-4']);
  for (const nodeId of ['edge-1', 'edge-2'])
    operator.store(`nodes/${nodeId}/node.json`, { nodeId, role: 'edge' });
  const shop = aWebService({ project: 'shop', ingress: at(domain) });
  for (const nodeId of ['web-3', 'web-4'])
    operator.store(`nodes/${nodeId}/desired.json`, aDesired([shop], { nodeId }));
  return operator;
}

describe('a domain that a service of another node has', () => {
  it.each([
    ['however it is spelt', 'www.example.com', 'WWW.Example.com', 'www.example.com'],
    ['as a wildcard', '*.example.com', '*.EXAMPLE.com', '*.example.com'],
  ])('is refused with both services and their nodes, %s', async (_, theirs, ours, told) => {
    const operator = aCluster(theirs);
    const file = operator.write('blog.yaml', aFile(ours));
    for (const flags of [[], ['--dry-run']]) {
      const end = await operator.reeve('deploy', file, ...flags);
      expect([end.status, end.stdout, end.stderr]).toEqual([
        65,
        '',
        `reeve: cannot deploy "${file}": domain "${told}" of "blog/web" on web-1, web-2 ` +
          'belongs to "shop/web" on web-3, web-4 already\n',
      ]);
    }
    expect(operator.stored('nodes/web-1/desired.json')).toBeUndefined();
  });

  it('is free on another edge, and for the service itself as often as it likes', async () => {
    const operator = aCluster('www.example.com');
    for (let times = 0; times < 2; times += 1) {
      const end = await operator.reeve(
        'deploy',
        operator.write('blog.yaml', aFile('www.example.com', 'edge-2')),
      );
      expect(end.status).toBe(0);
    }
    const { services } = JSON.parse(operator.stored('nodes/web-2/desired.json') ?? '') as {
      services: DesiredService[];
    };
    expect(services.map(({ ingress }) => ingress)).toEqual([at('www.example.com', 'edge-2')]);
  });

  it('does not go back to one that had it before', async () => {
    const operator = createOperator(['web-1', 'web-2', 'web-3']);
    for (const domain of ['www.example.com', 'blog.example.com']) {
      expect((await operator.reeve('deploy', operator.write('blog.yaml', aFile(domain)))).status).toBe(0);
    }
    const shop = aWebService({ project: 'shop', ingress: at('www.example.com') });
    operator.store('nodes/web-3/desired.json', aDesired([shop], { nodeId: 'web-3' }));
    const before = operator.stored('nodes/web-1/desired.json');
    const end = await operator.reeve('rollback', 'blog/web');
    expect([end.status, end.stderr.split('\n').at(-2)]).toEqual([
      65,
      'reeve: cannot roll back blog/web: domain "www.example.com" of "blog/web" on web-1 ' +
        'belongs to "shop/web" on web-3 already',
    ]);
    expect(operator.stored('nodes/web-1/desired.json')).toBe(before);
  });
});
