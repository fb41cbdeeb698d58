// deploy-action killed again and again, at whatever moment.
import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { type ActionsNode, makeActionsNode } from '../../support/actions-node.ts';
import { until } from '../../support/balanced.ts';

type Measures = { begun: number; ran: number; told: number };

const measure = (node: ActionsNode): Measures => ({
  begun: existsSync(node.places.markers) ? node.markers().length : 0,
  ran: node.ran().length,
  told: node.results().length,
});

type Moment = (now: Measures, before: Measures) => boolean;

const moments: readonly Moment[] = [
  () => true,
  (now, before) => now.begun > before.begun,
  (now, before) => now.ran > before.ran,
  (now, before) => now.told > before.told,
];

/** A run that is killed at the moment, unless it is over before. Where that met the approval. */
async function killAt(node: ActionsNode, moment: Moment): Promise<string> {
  const before = measure(node);
  const running = node.start('deploy-action', '--wait', '20');
  let isOver = false;
  void running.ended.then(() => {
    isOver = true;
  });
  await until(() => isOver || moment(measure(node), before));
  running.child.kill('SIGKILL');
  const { signal } = await running.ended;
  const { begun, told } = measure(node);
  if (signal === null) return 'over';
  if (begun === before.begun) return 'killed before it was begun';
  return told === before.told ? 'killed while it was done' : 'killed once it was told';
}

it('deploys each of many approvals at most once, and tells one end of each (O70)', async () => {
  const node = makeActionsNode();
  node.writeScript('sleep 0.2');
  const met: string[] = [];
  for (let number = 0; number < 24; number += 1) {
    const approval = { from: 'pending', to: 'approved', timestamp: 1_785_700_000 + number, by: 'op' };
    node.put('web', { transition_history: [approval], details: { diff: String(number) } });
    met.push(await killAt(node, moments[number % moments.length] as Moment));
    // Where nobody looks in between, the next approval takes its place.
    if (number % 3 !== 0) await node.reeve('deploy-action', '--wait', '20');
  }
  await node.reeve('deploy-action', '--wait', '20');
  expect(node.inbox()).toEqual([]);
  const results = node.results();
  const keys = results.map(({ key }) => key);
  expect(new Set(keys).size).toBe(keys.length);
  expect(node.markers()).toHaveLength(keys.length);
  expect(node.ran().length).toBeLessThanOrEqual(keys.length);
  const completed = results.filter(({ status }) => status === 'completed').length;
  expect(node.ran().length).toBeGreaterThanOrEqual(completed);
  expect(completed).toBeGreaterThan(0);
  // It was tried: kills have met each of these.
  expect(met).toEqual(expect.arrayContaining(['killed before it was begun', 'killed while it was done']));
  const unknown = results.filter(({ reason }) => reason?.startsWith('unknown') === true).length;
  // Some of those had ended, and were told as what they were.
  expect(unknown).toBeGreaterThan(0);
}, 300_000);
