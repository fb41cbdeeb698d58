// Looks at what actions need: the way to the control host, the checkout with its script, and what waits; on a control host its tree.
import { access, constants, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { surveyControl } from '../actions/control/survey.ts';
import { readServices } from '../actions/services.ts';
import { readStrays } from '../actions/strays.ts';
import { surveyNode } from '../actions/survey.ts';
import type { ActionsConfig } from '../config/config.ts';
import { actionStates, eventsRoot, servicesFile, stateDirectory } from '../deploy-runner/layout.ts';
import { describeError } from '../errors.ts';
import { findProgram } from '../exec/find.ts';
import { silentLog } from '../report/log.ts';
import { kindOfPlace } from '../rsync/place.ts';
import { listKeyFiles, sshDirectory } from '../rsync/ssh.ts';
import { findUser } from '../runner/user.ts';
import { lookAt } from './gather-files.ts';
import type { ActionsFacts, ControlFacts, PlaceFacts, TreeDirectory } from './judge-actions.ts';
import type { World } from './world.ts';

export async function gatherActions({ base, signal }: World, actions: ActionsConfig): Promise<ActionsFacts> {
  const ctx = { ...base, log: silentLog };
  const { node, checkout, script, user, timeoutMs } = actions;
  const directory = sshDirectory(dirname(base.paths.configFile));
  const places = await Promise.all([
    lookAtPlace('pull', actions.pull, directory),
    lookAtPlace('push', actions.push, directory),
  ]);
  const needsSsh = places.some(({ kind }) => kind === 'ssh');
  const [knownHosts, missingPrograms, survey, strays, userProblem, servicesProblem] = await Promise.all([
    lookAtKnownHosts(join(directory, 'known_hosts')),
    listMissing(needsSsh ? ['rsync', 'prlimit', 'ssh'] : ['rsync', 'prlimit']),
    surveyNode(ctx),
    readStrays(ctx),
    failureOf(findUser({ signal }, user)),
    failureOf(readServices(checkout, node)),
  ]);
  return {
    ...{ node, timeoutMs, places, missingPrograms, survey, userProblem },
    ...(needsSsh ? { knownHosts } : {}),
    checkout: { path: checkout, isThere: await isDirectory(checkout) },
    services: { path: servicesFile(checkout, node), problem: servicesProblem },
    ...(script === undefined ? {} : { script: await lookAtScript(join(checkout, script)) }),
    strays: { count: strays.count, names: strays.entries.map(({ name }) => name) },
  };
}

async function lookAtPlace(
  direction: 'pull' | 'push',
  place: string,
  directory: string,
): Promise<PlaceFacts> {
  const kind = kindOfPlace(place);
  const about = { direction, place, kind, keys: [] };
  if (kind === 'local') return { ...about, isThere: await isDirectory(place.split('{date}')[0] ?? '') };
  if (kind === 'daemon') return about;
  return { ...about, keys: await Promise.all(listKeyFiles(directory, direction).map(lookAt)) };
}

async function lookAtKnownHosts(path: string): Promise<ActionsFacts['knownHosts']> {
  const text = await readFile(path, 'utf8').catch(() => '');
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'));
  return { ...(await lookAt(path)), hosts: lines.length };
}

async function lookAtScript(path: string): Promise<{ path: string; isThere: boolean; canRun: boolean }> {
  const about = await stat(path).catch(() => undefined);
  const canRun = await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
  return { path, isThere: about?.isFile() === true, canRun };
}

async function isDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true;
}

async function listMissing(programs: readonly string[]): Promise<string[]> {
  const found = await Promise.all(programs.map((program) => findProgram(program)));
  return programs.filter((_, index) => found[index] === undefined);
}

async function failureOf(work: Promise<unknown>): Promise<string | undefined> {
  return await work.then(() => undefined, describeError);
}

export async function gatherControl(
  { base }: World,
  { root, ...actions }: ActionsConfig & { root: string },
): Promise<ControlFacts> {
  const directories = await Promise.all([
    lookAtDirectory(root, '.'),
    ...actionStates.map((state) => lookAtDirectory(stateDirectory(root, state), state)),
    lookAtDirectory(join(root, 'deploy'), 'deploy'),
    lookAtDirectory(eventsRoot(root), '../events'),
  ]);
  return { root, directories, survey: await surveyControl({ ...actions, root }, base) };
}

async function lookAtDirectory(path: string, name: string): Promise<TreeDirectory> {
  const about = await stat(path).catch(() => undefined);
  const writable = await access(path, constants.W_OK).then(
    () => true,
    () => false,
  );
  return {
    ...{ name, writable, isDirectory: about?.isDirectory() ?? false, device: about?.dev },
    ...(await lookAt(path)),
  };
}
