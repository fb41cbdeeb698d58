// All checks, in the order in which they are told: what a person looks at first comes first.

import { compileConfig } from '../config/compile.ts';
import type { ActionsConfig, ClusterConfig, CommandsConfig } from '../config/config.ts';
import { readMainSource } from '../config/load.ts';
import { describeProblem } from '../config/problems.ts';
import { ConfigError, describeError, InputError, UnavailableError } from '../errors.ts';
import { readHolds } from '../hold/holds.ts';
import type { Check } from './check.ts';
import { type Finding, failure, formatBytes, ok, orOk, skipped, warning } from './finding.ts';
import { gatherActions } from './gather-actions.ts';
import { gatherAgents } from './gather-agents.ts';
import { gatherBackups } from './gather-backups.ts';
import { gatherCommands, gatherProxy } from './gather-commands.ts';
import { gatherControl } from './gather-control.ts';
import { gatherBalancer, gatherCaddy } from './gather-edge.ts';
import { gatherEngine } from './gather-engine.ts';
import {
  gatherCertificates,
  gatherDirectories,
  gatherDisks,
  gatherKey,
  gatherLeftovers,
  gatherSecrets,
  lookAt,
} from './gather-files.ts';
import { gatherJobs } from './gather-jobs.ts';
import { gatherFailures, gatherLocks, gatherRuns } from './gather-runs.ts';
import { gatherStore } from './gather-store.ts';
import { gatherPendingChanges } from './gather-units.ts';
import { judgeActions } from './judge-actions.ts';
import { judgeAgents } from './judge-agents.ts';
import { judgeBackups } from './judge-backups.ts';
import { judgeBalancer } from './judge-balancer.ts';
import { judgeCaddy } from './judge-caddy.ts';
import { judgeCommands, judgeProxy } from './judge-commands.ts';
import { judgeControl } from './judge-control.ts';
import { judgeContainers, judgeEngine, judgeEngineFailure } from './judge-engine.ts';
import {
  judgeCertificates,
  judgeConfigFile,
  judgeDirectories,
  judgeDisks,
  judgeKey,
  judgeLeftovers,
  judgeSecrets,
} from './judge-files.ts';
import { judgeJobs } from './judge-jobs.ts';
import { judgeFailures, judgeHolds, judgeLocks, judgeRuns } from './judge-runs.ts';
import { judgeStore, judgeStoreFailure } from './judge-store.ts';
import { judgeTimers, judgeUnits } from './judge-units.ts';
import { describeSilence } from './silence.ts';
import type { World } from './world.ts';

const ownUid = (): number => process.getuid?.() ?? 0;

export const checks: readonly Check[] = [
  { name: 'config', run: checkConfig },
  { name: 'directories', run: async (world) => judgeDirectories(await gatherDirectories(world), ownUid()) },
  { name: 'secrets', run: async (world) => judgeSecrets(await gatherSecrets(world), ownUid()) },
  { name: 'disk', run: async (world) => judgeDisks(await gatherDisks(world), formatBytes) },
  { name: 'state', run: async (world) => judgeLeftovers(await gatherLeftovers(world)) },
  { name: 'locks', run: async (world) => judgeLocks(await gatherLocks(world), world.now) },
  { name: 'engine', run: checkEngine },
  { name: 'store', run: checkStore },
  { name: 'backups', run: checkBackups },
  {
    name: 'caddy',
    run: forEdges(async (world, cluster) => judgeCaddy(await gatherCaddy(world, cluster), world.now)),
  },
  {
    name: 'balancer',
    run: forEdges(async (world, cluster) => judgeBalancer(await gatherBalancer(world, cluster))),
  },
  {
    name: 'certificates',
    run: async (world) => [
      ...judgeCertificates(await gatherCertificates(world), world.now),
      ...judgeKey(await gatherKey(world)),
    ],
  },
  {
    name: 'jobs',
    run: async (world) => {
      const { jobs } = world.config ?? {};
      return jobs === undefined ? [] : judgeJobs(await gatherJobs(world, jobs), world.now);
    },
  },
  {
    name: 'commands',
    run: forCommands(async (world, commands) =>
      judgeCommands(await gatherCommands(world, commands), world.now),
    ),
  },
  {
    name: 'proxy',
    run: forCommands(async (world, commands) => judgeProxy(await gatherProxy(world, commands))),
  },
  { name: 'actions', run: checkActions },
  { name: 'units', run: checkUnits },
  { name: 'agents', run: async (world) => judgeAgents(await gatherAgents(world)) },
  { name: 'runs', run: async (world) => judgeRuns(await gatherRuns(world), world.now) },
  { name: 'failures', run: async (world) => judgeFailures(await gatherFailures(world), world.now) },
  { name: 'holds', run: async ({ base, now }) => judgeHolds(await readHolds(base.paths, now, base.log)) },
];

/** Compiled anew: only that finds every problem. */
async function checkConfig({ base }: World): Promise<Finding[]> {
  const { configFile } = base.paths;
  try {
    const compiled = compileConfig(readMainSource(base.paths, base.overrides), base);
    const { config, problems, tokenFile, tokenWarning } = compiled;
    const findings = [
      ...problems.map((problem) => failure(describeProblem(problem))),
      // Who reads the token is the check of commands' to tell, once.
      ...config.warnings.filter((text) => text !== tokenWarning).map((text) => warning(text)),
      ...judgeConfigFile(await lookAt(configFile), { isTold: tokenFile === configFile }),
    ];
    return orOk(findings, ok('valid', { where: configFile }));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [failure(describeError(error))];
  }
}

async function checkEngine({ config }: World): Promise<Finding[]> {
  const { cluster, jobs } = config ?? {};
  if (!isApp(cluster) && jobs === undefined) return [skipped('this machine runs no containers of ours')];
  const socket = cluster?.docker.socket ?? '/var/run/docker.sock';
  try {
    const facts = await gatherEngine(socket, cluster?.nodeId ?? '');
    // What else runs beside jobs is nothing to reeve where it has no services.
    return [...judgeEngine(facts), ...(isApp(cluster) ? judgeContainers(facts) : [])];
  } catch (error) {
    return judgeEngineFailure(socket, describeSilence(error));
  }
}

function isApp(cluster: ClusterConfig | undefined): cluster is ClusterConfig & { nodeId: string } {
  return cluster?.nodeId !== undefined && cluster.roles.includes('app');
}

/** Other machines are not bothered with a line. */
function forEdges(run: (world: World, cluster: ClusterConfig) => Promise<Finding[]>): Check['run'] {
  return async (world) => {
    const { cluster } = world.config ?? {};
    return cluster?.nodeId !== undefined && cluster.roles.includes('edge') ? await run(world, cluster) : [];
  };
}

function forCommands(run: (world: World, commands: CommandsConfig) => Promise<Finding[]>): Check['run'] {
  return async (world) => {
    const { commands } = world.config ?? {};
    return commands === undefined ? [] : await run(world, commands);
  };
}

/** A machine may be a node, a control host, or both. */
async function checkActions(world: World): Promise<Finding[]> {
  const { actions } = world.config ?? {};
  if (actions === undefined) return [];
  const { root } = actions;
  return [
    ...(actions.node === '' ? [] : await checkActionsNode(world, actions)),
    ...(root === undefined ? [] : judgeControl(await gatherControl(world, { ...actions, root }))),
  ];
}

/** What the configuration lacks is the first check's to tell. */
async function checkActionsNode(world: World, actions: ActionsConfig): Promise<Finding[]> {
  const missing = (['pull', 'push', 'checkout'] as const).filter((key) => actions[key] === '');
  if (missing.length === 0) return judgeActions(await gatherActions(world, actions), world.now);
  const names = missing.map((key) => `actions.${key}`).join(', ');
  return [skipped(`the configuration says nothing of use for ${names}`)];
}

async function checkStore(world: World): Promise<Finding[]> {
  const { cluster, jobs } = world.config ?? {};
  if (cluster === undefined) return [skipped('the configuration has no section cluster')];
  // Its section cluster is there for the engine.
  if (cluster.nodeId === undefined && jobs !== undefined) {
    return [skipped('this machine takes jobs alone: cluster.nodeId is not set')];
  }
  try {
    return judgeStore(await gatherStore(world, cluster));
  } catch (error) {
    return judgeStoreFailure(cluster, describeSilence(error));
  }
}

/** Machines without backups are not bothered with a line, and why the desired state cannot be read is told of the store. */
async function checkBackups(world: World): Promise<Finding[]> {
  const { cluster } = world.config ?? {};
  if (!isApp(cluster)) return [];
  try {
    const { nodeId, agentId = nodeId } = cluster;
    return judgeBackups(await gatherBackups(world, { ...cluster, nodeId, agentId }), world.now);
  } catch (error) {
    if (error instanceof InputError || error instanceof UnavailableError) return [];
    throw error;
  }
}

async function checkUnits(world: World): Promise<Finding[]> {
  const units = await world.units();
  if (units === undefined) return [skipped('systemd does not run here: units and timers are not looked at')];
  const states = { units, pendingChanges: await gatherPendingChanges(world) };
  return [...judgeUnits(states), ...judgeTimers(states)];
}
