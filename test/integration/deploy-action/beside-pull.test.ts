// A node as it is: it pulls, performs and sends at the same time, in one state directory.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type ActionResult, parseResultEvent } from '../../../src/lib/deploy-runner/event.ts';
import { type ActionsNode, makeActionsNode } from '../../support/actions-node.ts';
import { until } from '../../support/balanced.ts';
import type { Program } from '../../support/programs.ts';

type Pulling = ActionsNode & {
  /** A file at the source. */
  approve(id: string, content: object | string): void;
  /** What the control side has, and what is still to be sent: name and result. */
  told(): { name: string; result: ActionResult }[];
};

function makePulling(): Pulling {
  const node = makeActionsNode();
  const [source, events] = [join(node.root, 'source'), join(node.root, 'events')];
  for (const directory of [source, events, node.places.outbox]) mkdirSync(directory, { recursive: true });
  const read = (directory: string) =>
    readdirSync(directory)
      .filter((name) => name.startsWith('evt-'))
      .map((name): [string, Buffer] => [name, readFileSync(join(directory, name))]);
  return {
    ...node,
    approve: (id, content) =>
      writeFileSync(
        join(source, `${id}.json`),
        typeof content === 'string' ? content : JSON.stringify(content),
      ),
    told: () =>
      [...new Map([...read(node.places.outbox), ...read(events)])].map(([name, bytes]) => ({
        name,
        result: parseResultEvent(bytes),
      })),
  };
}

const leftOpen = (node: ActionsNode): string[] =>
  readdirSync(node.places.markers).filter((name) => !name.endsWith('.json'));

const numbers = Array.from({ length: 60 }, (_, number) => String(number).padStart(3, '0'));

/** On both ways at once. Gives how often they took turns. */
async function refuseAll(): Promise<number> {
  const node = makePulling();
  for (const number of numbers) {
    node.approve(`redeploy-vps-bad-${number}`, '{');
    node.put(`unlisted-${number}`);
  }
  const [pull, deploys] = await Promise.all([node.reeve('rsync-pull'), node.reeve('deploy-action')]);
  expect([pull.status, deploys.status]).toEqual([1, 1]);
  expect((await node.reeve('rsync-pull')).status).toBe(0);
  const told = node.told();
  expect(told.map(({ result }) => result.actionId).sort()).toEqual([
    ...numbers.map((number) => `redeploy-vps-bad-${number}`),
    ...numbers.map((number) => `redeploy-vps-unlisted-${number}`),
  ]);
  const times = told.map(({ name }) => name.split('-')[2]);
  expect(new Set(times).size, 'no two have taken one time').toBe(told.length);
  const order = told.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(({ result }) => result.actionId);
  expect([leftOpen(node), node.inbox()]).toEqual([[], []]);
  return order.filter((id, index) => id.includes('bad') !== order[index - 1]?.includes('bad')).length;
}

it('refuses on both ways at once, and tells each once, under a time of its own (D41, D45)', async () => {
  let turns = 0;
  for (let tries = 0; tries < 4 && turns <= 2; tries += 1) turns = await refuseAll();
  expect(turns, 'they took turns, so that it was tried').toBeGreaterThan(2);
});

/** Ends it at the moment, unless it is over before. True where it was killed. */
async function killWhen(program: Program, isMoment: () => boolean): Promise<boolean> {
  let isOver = false;
  void program.ended.then(() => {
    isOver = true;
  });
  await until(() => isOver || isMoment());
  if (isOver) return false;
  program.child.kill('SIGKILL');
  return (await program.ended).signal !== null;
}

it('D36 D41 O64 performs each approval at most once and tells one end of it, whichever of the two is killed', async () => {
  const node = makePulling();
  node.writeScript('sleep 0.1');
  const killed = { pull: 0, deploys: 0 };
  const isTried = (): boolean => Math.min(killed.pull, killed.deploys) > 0;
  const approvals: string[] = [];
  for (let number = 0; number < 12 || (number < 48 && !isTried()); number += 1) {
    const service = ['web', 'db', 'queue', 'node-agent'][number % 4] ?? '';
    const history = [{ from: 'pending', to: 'approved', timestamp: 1_785_700_000 + number, by: 'op' }];
    approvals.push(`redeploy-vps-${service}`);
    node.approve(`redeploy-vps-${service}`, node.approved(service, { transition_history: history }));
    if (number % 2 === 1) await node.reeve('rsync-pull');
    const begun = node.markers().length;
    const waiting = node.inbox().length;
    const [pull, deploys] = [node.start('rsync-pull'), node.start('deploy-action', '--wait', '20')];
    if (number % 3 === 0 && (await killWhen(pull, () => node.inbox().length > waiting))) killed.pull += 1;
    if (number % 3 === 1 && (await killWhen(deploys, () => node.markers().length > begun)))
      killed.deploys += 1;
    await Promise.all([pull.ended, deploys.ended]);
    // The source has the next one of this id only when this one is known here.
    await node.reeve('rsync-pull');
  }
  await node.reeve('deploy-action', '--wait', '20');
  await node.reeve('rsync-pull');
  const told = node.told().map(({ result }) => result);
  expect(told.map(({ actionId }) => actionId).sort()).toEqual(approvals.toSorted());
  expect(new Set(told.map(({ key }) => key)).size).toBe(approvals.length);
  const completed = told.filter(({ status }) => status === 'completed').length;
  expect(node.ran().length).toBeGreaterThanOrEqual(completed);
  expect(node.ran().length).toBeLessThanOrEqual(approvals.length);
  expect(completed).toBeGreaterThanOrEqual(approvals.length - killed.deploys);
  expect([leftOpen(node), node.inbox()]).toEqual([[], []]);
  expect(isTried()).toBe(true);
}, 300_000);
