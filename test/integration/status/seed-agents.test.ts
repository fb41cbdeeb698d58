// Nodes that the registry still calls launch-pad's TypeScript agent's, as `status --cluster` shows them.
import { expect, it } from 'vitest';
import { aNodeStatus, aServiceStatus } from '../../support/builders.ts';
import { createOperator } from '../../support/operator.ts';

it('warns of each node that another agent runs, unless reeve has reported from it (L177)', async () => {
  const operator = createOperator([]);
  const put = (nodeId: string, agentType: string, more: object = {}): void => {
    const lastSeen = new Date().toISOString();
    operator.store(`nodes/${nodeId}/node.json`, { nodeId, role: 'app', agentType });
    operator.store(`nodes/${nodeId}/status.json`, { ...aNodeStatus({ nodeId }), lastSeen, ...more });
  };
  put('a-ts', 'ts');
  put('b-rust', 'rust');
  put('c-taken-over', 'ts');
  operator.store('nodes/c-taken-over/reeve.json', { version: 1, converged: true, failing: [] });
  put('d-failing', 'ts', { services: [aServiceStatus({ state: 'error' })] });
  operator.store('nodes/e-silent/node.json', { nodeId: 'e-silent', role: 'app', agentType: 'ts' });
  const end = await operator.reeve('status', '--cluster');
  const rows = end.stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/\s{2,}/));
  const warning = "launch-pad's TypeScript agent runs it";
  expect(rows.slice(1).map((row) => [row[0], row.at(-1)])).toEqual([
    ['a-ts', warning],
    ['b-rust', '1/1'],
    ['c-taken-over', '1/1'],
    ['d-failing', `${warning}; blog/web`],
    ['e-silent', warning],
  ]);
  expect(end.status).toBe(1);
});
