// A node that serves already: where tests of what goes wrong begin.
import { expect } from 'vitest';
import { type Container, makeNode, type ReeveEnd, type TestNode, type TestNodeOptions } from './node.ts';
import { aWebDeploy } from './services.ts';

type Hook = NonNullable<TestNodeOptions['onTestFinished']>;

/** A node with a service that serves, and what it runs. */
export async function aRunningNode(
  project: string,
  onTestFinished: Hook,
): Promise<{ node: TestNode; before: Container[] }> {
  const node = makeNode({ project, onTestFinished });
  await node.deploy([aWebDeploy({ replicas: 1 })]);
  const end = await node.reeve('reconcile', '--json');
  expect([end.status, end.json().troubles]).toEqual([0, []]);
  return { node, before: await node.containers() };
}

/** The one line in which a command says why it failed. */
export function sentenceOf(end: ReeveEnd): string {
  const lines = end.stderr.split('\n').filter((line) => line.startsWith('reeve: '));
  expect(lines).toHaveLength(1);
  return lines[0]?.slice('reeve: '.length) ?? '';
}
