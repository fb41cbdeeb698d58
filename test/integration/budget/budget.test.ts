// What each command may cost, compared with test/fixtures/budget.json. `REEVE_UPDATE_BUDGET=1` writes that file anew:
// read the difference, and say in the commit why it is worth it.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { makeActionsNode } from '../../support/actions-node.ts';
import { type CommandsNode, makeCommandsNode, nodeBoot } from '../../support/commands-node.ts';
import { makeControlHost } from '../../support/control-host.ts';
import { edgeId, startEdge, type TestEdge } from '../../support/edge.ts';
import { engineSocket } from '../../support/engine.ts';
import { type EngineProxy, startEngineProxy } from '../../support/engine-proxy.ts';
import { environmentOf, type Footprint, type Place, takeFootprint } from '../../support/footprint.ts';
import { type JobRuns, makeJobRuns } from '../../support/job-runs.ts';
import { makeNode, type TestNode } from '../../support/node.ts';
import { startProcess } from '../../support/programs.ts';
import { measureInTurn } from '../../support/timing.ts';

const budgetFile = join(import.meta.dirname, '../../fixtures/budget.json');
const updating = process.env['REEVE_UPDATE_BUDGET'] === '1';
const budgets: Record<string, Footprint> = JSON.parse(readFileSync(budgetFile, 'utf8'));

const commands = [
  '--version',
  '--help',
  'backup',
  'config check',
  'config show',
  'deploy SERVICES --dry-run',
  'edge',
  'heartbeat',
  'history',
  'hold',
  'lock list',
  'plan',
  'prune --dry-run',
  'reconcile',
  'status',
] as const;

/** Each with the words for one more run of it. */
const jobCommands: Readonly<Record<string, (runs: JobRuns) => string[]>> = {
  'api jobs': () => ['api', 'jobs', '--listen', '127.0.0.1:0', '--idle', '0.01'],
  'claim --window 0': () => ['claim', '--window', '0'],
  'job run JOB': (runs) => ['job', 'run', runs.claim({ command: 'true' }).payload.job_id],
};

/** Of looks that find nothing: they come each 15 or 30 seconds. */
const actionCommands: Readonly<Record<string, () => Place>> = {
  'rsync-pull': makeQuietNode,
  'deploy-action': makeQuietNode,
  'action dispatch --settle': makeQuietControl,
  'action list': makeQuietControl,
};

/** The same of commands and of the proxy. */
const commandsCommands: Readonly<Record<string, (node: CommandsNode) => string[]>> = {
  'api commands': () => ['api', 'commands', '--listen', '127.0.0.1:0', '--idle', '0.01'],
  'command run KEY': (one) => ['command', 'run', acceptCommand(one)],
  'proxy list': () => ['proxy', 'list'],
  'proxy set INSTANCE PORT': () => ['proxy', 'set', 'chat', '20001'],
};

const cleaners: (() => void | Promise<void>)[] = [];
const onTestFinished = (clean: () => void | Promise<void>): void => void cleaners.push(clean);
let proxy: EngineProxy;
let node: TestNode;
let edge: TestEdge & Place;

beforeAll(async () => {
  proxy = await startEngineProxy(engineSocket(), onTestFinished);
  node = makeNode({ project: 'budget', socket: proxy.socket, onTestFinished });
  const services = ['one', 'two', 'three'].map((service) => ({ service, image: 'reeve-demo/box:v1' }));
  await node.deploy(services);
  await node.reeve('reconcile');
  edge = await startQuietEdge();
});
afterAll(async () => {
  for (const clean of cleaners.reverse()) await clean();
});

describe('the budget of', () => {
  const measured: Record<string, Footprint> = {};
  afterAll(() => {
    if (updating) writeFileSync(budgetFile, `${JSON.stringify(measured, null, 2)}\n`);
  });

  it.each(commands)('reeve %s is kept', async (command) => {
    const words = command
      .split(' ')
      .map((word) => (word === 'SERVICES' ? join(node.root, 'services.yaml') : word));
    const place = command === 'edge' ? edge : node;
    // The first run fills the caches.
    await place.reeve(...words);
    keepBudget(command, await takeFootprint(place, proxy, words));
  });

  it.each(Object.keys(jobCommands))('reeve %s is kept', async (command) => {
    const runs = await makeJobRuns(proxy.socket);
    const words = (): string[] => jobCommands[command]?.(runs) ?? [];
    const place = { ...runs, nodeId: 'node-1', storeDir: join(runs.root, 'store') };
    await startProcess(inject('reeveBin'), words(), { ...environmentOf(place), ...runs.env }).ended;
    const footprint = await takeFootprint(place, proxy, words());
    // Samples of what its container uses, as many as it takes long.
    const engine = footprint.engine.filter((line) => !line.endsWith('/stats'));
    keepBudget(command, { ...footprint, engine });
  });

  it.each(Object.keys(actionCommands))('reeve %s is kept', async (command) => {
    const place: Place = actionCommands[command]?.() ?? node;
    const words = command.split(' ');
    await startProcess(inject('reeveBin'), words, { ...environmentOf(place), ...place.env }).ended;
    keepBudget(command, await takeFootprint(place, proxy, words));
  });

  it.each(Object.keys(commandsCommands))('reeve %s is kept', async (command) => {
    const one = makeCommandsNode();
    const words = (): string[] => commandsCommands[command]?.(one) ?? [];
    const place = { ...one, nodeId: 'node-1', storeDir: join(one.root, 'store') };
    await startProcess(inject('reeveBin'), words(), { ...environmentOf(place), ...one.env }).ended;
    keepBudget(command, await takeFootprint(place, proxy, words()));
  });

  function keepBudget(command: string, footprint: Footprint): void {
    measured[command] = withHeadroom(footprint);
    if (!updating) expect(overruns(command, footprint)).toEqual([]);
  }
});

describe('the time of', () => {
  // Other work on the machine spoils a measurement now and then, but not four in a row.
  it.each([
    ['--version', 1.5],
    ['config show', 2],
  ])('reeve %s is at most %s times that of an empty program', { retry: 3 }, async (command, most) => {
    const empty = join(node.root, 'empty.js');
    writeFileSync(empty, '');
    const env = environmentOf(node);
    const times = await measureInTurn(21, {
      empty: { argv: [process.execPath, empty], env },
      reeve: { argv: [inject('reeveBin'), ...command.split(' ')], env },
    });
    expect(times.reeve / times.empty).toBeLessThanOrEqual(most);
  });
});

function makeQuietNode(): Place {
  const { root, env } = makeActionsNode();
  for (const name of ['source', 'events']) mkdirSync(join(root, name));
  return { ...placeIn(root), env };
}

function makeQuietControl(): Place {
  const { dir, environment } = makeControlHost();
  return { ...placeIn(dir), env: environment };
}

function placeIn(root: string): Place {
  return { root, nodeId: 'no-node', storeDir: join(root, 'store'), stateDir: join(root, 'state') };
}

/** The same id again, as one that has ended may be used once more. */
function acceptCommand(one: CommandsNode): string {
  const request = { jobId: 'c1', dir: '', env: [], mode: 'shell', shell: 'true' };
  const acceptedAt = new Date().toISOString();
  one.writeRecord('c1', {
    ...{ jobId: 'c1', generation: 'g1', acceptedAt, bootId: nodeBoot },
    state: { kind: 'accepted', request },
  });
  return 'c1';
}

/** One that has nothing to do, with the balancer that asks for more. */
async function startQuietEdge(): Promise<TestEdge & Place> {
  const started = await startEdge({ balancer: 'haproxy', whenFinished: onTestFinished });
  const stateDir = join(started.root, 'state');
  started.publish('app-1', [{ domain: 'a.example.com', hostPort: 20001 }]);
  await started.tick();
  await started.tick();
  const place = { ...started, nodeId: edgeId, stateDir };
  // What is compiled of the configuration holds for one environment.
  await startProcess(inject('reeveBin'), ['edge'], environmentOf(place)).ended;
  return place;
}

/** One sentence for each figure above its budget, and each list with something that is not in its budget. */
function overruns(command: string, footprint: Footprint): string[] {
  const budget = budgets[command];
  if (budget === undefined) return [`reeve ${command} has no budget in ${budgetFile}`];
  const numbers = (['modules', 'kilobytes', 'builtins'] as const)
    .filter((name) => footprint[name] > budget[name])
    .map((name) => `reeve ${command} loads ${footprint[name]} ${name}, its budget is ${budget[name]}`);
  const lists = (['programs', 'writes', 'engine', 'storeReads', 'storeWrites'] as const).flatMap((name) =>
    withoutAllowed(footprint[name], budget[name]).map(
      (item) => `reeve ${command}: ${name}: ${item} is not in its budget`,
    ),
  );
  return [...numbers, ...lists];
}

/** What is twice in the list has to be twice in the budget. */
function withoutAllowed(list: readonly string[], allowed: readonly string[]): string[] {
  const left = [...allowed];
  return list.filter((item) => {
    const at = left.indexOf(item);
    if (at !== -1) left.splice(at, 1);
    return at === -1;
  });
}

/** So that a few lines more do not need a new budget. */
function withHeadroom(footprint: Footprint): Footprint {
  return {
    ...footprint,
    modules: footprint.modules + 1,
    builtins: footprint.builtins + 2,
    kilobytes: Math.ceil((footprint.kilobytes * 1.1) / 5) * 5,
  };
}
