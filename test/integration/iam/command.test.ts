// `reeve node iam` as people call it.
import { describe, expect, it } from 'vitest';
import { makeMachine } from '../../support/machine.ts';

const region = 'eu-west-1';
const store = `s3://launch-pad-state-123456789012-${region}`;
const iam = async (cluster: object, ...flags: string[]) => {
  const end = await makeMachine({ cluster: { region, store, ...cluster } }).reeve('node', 'iam', ...flags);
  return { ...end, stderr: end.stderr.trim() };
};

type Policy = { Statement: { Sid: string; Resource: string[] }[] };

describe('node iam', () => {
  it('prints the policy of what this node is, and knows the account by the name of the bucket', async () => {
    const { status, stdout } = await iam({ nodeId: 'web-1', role: ['app', 'edge'], notify: 'sns' });
    const policy = JSON.parse(stdout) as Policy;
    const queues = policy.Statement.filter(({ Sid }) => Sid.endsWith('Listen')).flatMap(
      ({ Resource }) => Resource,
    );
    expect([status, queues]).toEqual([
      0,
      ['web-1', 'web-1-edge'].map((id) => `arn:aws:sqs:${region}:123456789012:launch-pad-default-${id}`),
    ]);
  });

  it('prints that of another node for an operator, with the reasons as JSON', async () => {
    const { stdout } = await iam({}, '--role', 'app', '--node', 'web-9', '--json');
    const answer = JSON.parse(stdout) as { policy: Policy; reasons: { sid: string; why: string }[] };
    expect(answer.reasons.map(({ sid }) => sid)).toEqual(answer.policy.Statement.map(({ Sid }) => Sid));
    expect(stdout).toContain('/nodes/web-9/desired.json');
  });

  it.each([
    [{}, [], 64, 'cannot tell the role: this machine is no node, so name one with --role'],
    [{}, ['--role', 'app'], 64, 'cannot tell the node: this machine is none, so name one with --node'],
    [{}, ['--role', 'root'], 64, 'cannot use --role "root": it is app, edge, app,edge or deploy'],
    [{ nodeId: 'a' }, ['--node', 'a*'], 64, 'cannot use --node "a*": it is no id'],
    [{ nodeId: 'a' }, ['--account', '12'], 64, 'cannot use --account "12": an account is twelve digits'],
    [
      { nodeId: 'a', store: 's3://state' },
      [],
      64,
      'cannot tell the account: name it with --account, twelve digits',
    ],
    [
      { nodeId: 'a', store: 'file:///s' },
      [],
      78,
      'cannot write a policy: cluster.store is file:///s, which is not in S3',
    ],
  ])('with %j and %j exits %i and says why', async (cluster, flags, status, message) => {
    expect(await iam(cluster, ...flags)).toMatchObject({ status, stderr: `reeve: ${message}` });
  });
});
