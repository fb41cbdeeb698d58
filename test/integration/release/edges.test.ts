// The edge that a deploy names, as an operator meets it: on a machine that is both, node and edge are two ids.
import { describe, expect, it } from 'vitest';
import { createOperator, type Operator } from '../../support/operator.ts';

function writeFile(operator: Operator, edge: string): string {
  const service = { project: 'shop', service: 'web', image: 'img:1', nodes: ['web-1'] };
  const ingress = { domain: 'shop.example.com', port: 8080, edge };
  return operator.write('shop.yaml', JSON.stringify({ services: [{ ...service, ingress }] }));
}

function storeEdge(operator: Operator, edgeId: string): void {
  operator.store(`nodes/${edgeId}/node.json`, { nodeId: edgeId, role: 'edge' });
  operator.store(`nodes/${edgeId}/edge.json`, { nodeId: edgeId, domains: [] });
}

describe('a service whose edge is a node', () => {
  it.each([
    ['of that machine', ['web-1-edge', 'edge-1'], 'its edge is "web-1-edge"'],
    ['there is besides', ['edge-1', 'edge-2'], 'the store knows "edge-1", "edge-2"'],
    ['there is, which is none', [], 'the store knows no edge'],
  ])('is refused with the edge %s', async (_, edges, told) => {
    const operator = createOperator(['web-1']);
    for (const edge of edges) storeEdge(operator, edge);
    const file = writeFile(operator, 'web-1');
    const end = await operator.reeve('deploy', file);
    const message = `cannot deploy "${file}": "web-1", the edge of "shop/web", is a node and no edge: ${told}`;
    expect([end.status, end.stderr]).toEqual([65, `reeve: ${message}\n`]);
    expect(operator.stored('nodes/web-1/desired.json')).toBeUndefined();
  });
});

describe('an edge that a deploy may name', () => {
  it('is one that the registry has as a node, and that tells of itself as an edge by now', async () => {
    const operator = createOperator(['web-1', 'edge-1']);
    operator.store('nodes/edge-1/reeve.json', { version: 1, edge: { balancer: 'haproxy' } });
    const end = await operator.reeve('deploy', writeFile(operator, 'edge-1'));
    expect([end.status, end.stderr]).toEqual([0, expect.not.stringContaining('warning')]);
  });

  it('is one that is not there yet, with a warning', async () => {
    const operator = createOperator(['web-1']);
    const end = await operator.reeve('deploy', writeFile(operator, 'edge-9'));
    const told = 'warning: edge "edge-9" of "shop/web" is not in the store: nobody will route to the service';
    expect([end.status, end.stderr]).toEqual([0, expect.stringContaining(told)]);
  });
});
