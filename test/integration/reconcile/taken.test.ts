// A port of ours that another program has taken while its container was stopped.
import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { makeNode, stopContainer } from '../../support/node.ts';
import { aWebDeploy } from '../../support/services.ts';

it('a stopped replica whose port is taken is made anew with another one, in the same run (R57)', async ({
  onTestFinished,
}) => {
  const node = makeNode({ project: 'taken', onTestFinished });
  await node.deploy([aWebDeploy({ replicas: 1 })]);
  await node.reeve('reconcile');
  const [before] = node.shard().backends;
  await stopContainer(node.socket, 'launchpad_taken_web_0');
  const other = createServer();
  onTestFinished(() => void other.close());
  await new Promise<void>((resolve, reject) => {
    other.once('error', reject);
    other.listen(before?.hostPort, '127.0.0.1', resolve);
  });
  const end = await node.reeve('reconcile', '--json');
  expect(end.json().actions.map(({ action, error }) => [action, error !== undefined])).toEqual([
    ['start', true],
    ['create', false],
    ['serve', false],
  ]);
  expect(end.stderr).toMatch(/address already in use|port is already allocated/);
  expect((await node.containers()).map(({ state }) => state)).toEqual(['running']);
  const [after] = node.shard().backends;
  expect(after?.hostPort).not.toBe(before?.hostPort);
  expect(node.state('ports.json')).toEqual({ version: 1, ports: { 'taken/web#0': after?.hostPort } });
  expect((await node.reeve('reconcile')).status).toBe(0);
});
