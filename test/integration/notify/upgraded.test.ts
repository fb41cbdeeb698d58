// A node of an older fleet, whose role knows nothing of queues: what it does until the policy is applied anew, and afterwards.
import { expect, it } from 'vitest';
import { cloudRegion as region } from '../../support/cloud.ts';
import { openDoor } from '../../support/guarded-cloud.ts';
import { type ListeningNode, makeListeningNode } from '../../support/listening.ts';
import { startNotified } from '../../support/notified.ts';
import type { ProgramEnd } from '../../support/programs.ts';

const account = '000000000000';
const queue = 'launch-pad-default-web-1';
const store = 's3://state';

/** What an operator applies to the role. */
async function policyOf(node: ListeningNode): Promise<unknown> {
  const end = await node.machine.reeve('node', 'iam', '--role', 'app', '--account', account);
  expect([end.status, end.stderr]).toEqual([0, '']);
  return JSON.parse(end.stdout);
}

it('is deaf and says so, and hears what has waited once its policy is applied anew (L133, L136, L137)', async () => {
  const notified = await startNotified(['web-1']);
  await notified.deploy(['web-1']);
  const older = makeListeningNode(notified.env, { store, notify: 'none' });
  const node = makeListeningNode(notified.env, { store });
  const listenBehind = async (policy: unknown): Promise<{ end: ProgramEnd; denied: readonly string[] }> => {
    const door = await openDoor(notified.cloud.endpoint, policy, { buckets: ['state'], region, account });
    const env = { ...notified.cloud.env, AWS_ENDPOINT_URL: door.endpoint };
    const end = await node.machine.start(['listen', '--window', '6'], env).ended;
    return { end, denied: door.denied };
  };

  const before = await listenBehind(await policyOf(older));
  expect(before.end).toMatchObject({ status: 69, stdout: '' });
  const why = new RegExp(`cannot find queue ${queue}: 403 AccessDenied`, 'g');
  // While it listens, and at the end.
  expect([before.end.stderr.match(why)?.length, node.wakes()]).toEqual([2, []]);
  expect((await notified.queues.messages(queue)).all).toBe(1);

  const after = await listenBehind(await policyOf(node));
  expect(after.denied).toEqual([]);
  expect(after.end).toMatchObject({ status: 0, stdout: `queue ${queue}: 1 message\n` });
  expect(node.wakes()).toEqual(['reconcile']);
});
