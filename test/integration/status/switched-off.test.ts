// What `status` and `doctor` make of a concern's last failure once the configuration has switched it off, and of a node that
// nothing has been deployed to.
import { expect, it } from 'vitest';
import { aNodeStatus } from '../../support/builders.ts';
import { createOperator, type Operator } from '../../support/operator.ts';

const failedRun = (concern: string) => ({
  ...{ version: 1, concern, runId: 'run-1', pid: 1, outcome: 'failed', exitCode: 69, durationMs: 5 },
  ...{ startedAt: '2026-06-04T03:00:00.000Z', endedAt: '2026-06-04T03:00:00.005Z' },
  ...{ lastEndedAt: '2026-06-04T03:00:00.005Z', lastGoodAt: null, error: 'no queue' },
});

async function look(operator: Operator, concern: string) {
  const status = await operator.reeve('status', '--json');
  const doctor = await operator.reeve('doctor', '--json');
  const { findings } = JSON.parse(doctor.stdout) as { findings: { level: string; what: string }[] };
  const isAbout = ({ level, what }: { level: string; what: string }): boolean =>
    level === 'failure' && what.includes(`the last run of ${concern} ended with 69`);
  return {
    status: status.status,
    told: findings.filter(isAbout).length,
    concerns: JSON.parse(status.stdout).concerns,
  };
}

it.each([
  ['listen', 'region: eu-west-1, notify: sns', 'notify: none'],
  ['reconcile', 'role: app', 'role: edge'],
  ['edge', 'role: edge', 'role: app'],
])('forgets how %s ended once %s has become %s (D45)', async (concern, before, after) => {
  const operator = createOperator([]);
  operator.write(`state/runs/${concern}.json`, JSON.stringify(failedRun(concern)));
  const configure = (more: string) =>
    operator.write(
      'reeve.yaml',
      `cluster: { nodeId: web-1, store: "file://${operator.root}/store", ${more} }\n`,
    );
  configure(before);
  expect(await look(operator, concern)).toMatchObject({ status: 1, told: 1 });
  configure(after);
  expect(await look(operator, concern)).toMatchObject({
    status: 0,
    told: 0,
    concerns: [{ concern, off: true }],
  });
  const shown = await operator.reeve('status');
  expect(shown.stdout).toMatch(new RegExp(`^${concern} +failed, now off`, 'm'));
});

it('says of a node without a desired state that nothing is deployed to it', async () => {
  const operator = createOperator(['idle', 'busy']);
  const put = (nodeId: string): void => {
    const lastSeen = new Date().toISOString();
    operator.store(`nodes/${nodeId}/status.json`, { ...aNodeStatus({ nodeId, services: [] }), lastSeen });
    operator.store(`nodes/${nodeId}/reeve.json`, { version: 1, converged: false, failing: [] });
  };
  put('idle');
  put('busy');
  operator.store('nodes/busy/desired.json', { nodeId: 'busy', version: 3, services: [] });
  const shown = await operator.reeve('status', '--cluster');
  expect(shown.stdout).toMatch(/^idle +\S.* nothing deployed /m);
  expect(shown.stdout).toMatch(/^busy +\S.* converging /m);
  const { nodes } = JSON.parse((await operator.reeve('status', '--cluster', '--json')).stdout);
  expect(nodes).toMatchObject([
    { nodeId: 'busy', deployed: true },
    { nodeId: 'idle', deployed: false },
  ]);
});
