// Documents of nodes that are not as they should be, as `status --cluster` shows them.
import { expect, it } from 'vitest';
import { aNodeStatus, aServiceStatus } from '../../support/builders.ts';
import { createOperator } from '../../support/operator.ts';

it.each<[string, unknown, string]>([
  ['services that are none', { services: null }, 'services is no list of services'],
  ['a service that is none', { services: [null] }, 'services is no list of services'],
  ['a service without replicas', { services: [{ project: 'blog', service: 'web', state: 'running' }] }, ''],
  ['a time that is none', { lastSeen: 5 }, 'lastSeen is no text'],
  ['a list', [], 'it is no JSON object'],
])('%s are that node’s trouble, and the others are shown (D45)', async (_, damage, trouble) => {
  const operator = createOperator([]);
  const put = (nodeId: string, more: unknown): void => {
    const whole = { ...aNodeStatus({ nodeId }), lastSeen: new Date().toISOString() };
    operator.store(`nodes/${nodeId}/node.json`, { nodeId, role: 'app' });
    const status = Array.isArray(more) ? more : { ...whole, ...(more as object) };
    operator.store(`nodes/${nodeId}/status.json`, status);
  };
  put('damaged', damage);
  put('whole', {});
  const end = await operator.reeve('status', '--cluster');
  const [, first = '', second = ''] = end.stdout.split('\n');
  expect(first).toMatch(/^damaged +never +stale /);
  expect(first).toContain(`cannot read "nodes/damaged/status.json": ${trouble}`);
  expect(second).toMatch(/^whole .* live /);
  expect([end.status, end.stderr]).toEqual([1, '']);
});

it('what a node has written is shown, and no terminal obeys it', async () => {
  const operator = createOperator([]);
  const services = [aServiceStatus({ service: 'web\u001b[31m\u0007', state: 'error' })];
  operator.store('nodes/web-1/node.json', { nodeId: 'web-1', role: 'app' });
  operator.store('nodes/web-1/status.json', { ...aNodeStatus({ nodeId: 'web-1', services }) });
  const end = await operator.reeve('status', '--cluster');
  expect(end.stdout).toContain('blog/web\\u001b[31m\\u0007');
});

it('an error that quotes what was typed is printed, and no terminal obeys it', async () => {
  const end = await createOperator([]).reeve('\u001b[31m');
  expect([end.status, end.stderr]).toEqual([64, expect.stringContaining('\\u001b[31m')]);
});
