// Looks at what actions need: the way to the control host, the checkout with its script, and what waits.
import { access, constants, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readServices } from '../actions/services.ts';
import { readStrays } from '../actions/strays.ts';
import { surveyNode } from '../actions/survey.ts';
import type { ActionsConfig } from '../config/config.ts';
import { servicesFile } from '../deploy-runner/layout.ts';
import { canNameActions } from '../deploy-runner/names.ts';
import { describeError } from '../errors.ts';
import { findProgram } from '../exec/find.ts';
import { silentLog } from '../report/log.ts';
import { kindOfPlace } from '../rsync/place.ts';
import { listKeyFiles, sshDirectory } from '../rsync/ssh.ts';
import { readRsyncVersion } from '../rsync/version.ts';
import { findUser } from '../runner/user.ts';
import { lookAt } from './gather-files.ts';
import type { ActionsFacts, PlaceFacts } from './judge-actions.ts';
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
  const [knownHosts, missingPrograms, rsyncVersion, survey, strays, userProblem, services] =
    await Promise.all([
      lookAtKnownHosts(join(directory, 'known_hosts')),
      listMissing(needsSsh ? ['rsync', 'prlimit', 'ssh'] : ['rsync', 'prlimit']),
      readRsyncVersion({ signal }),
      orProblem(surveyNode(ctx)),
      orProblem(readStrays(ctx)),
      failureOf(findUser({ signal }, user)),
      lookAtServices(checkout, node),
    ]);
  return {
    ...{ node, timeoutMs, places, missingPrograms, rsyncVersion, survey, userProblem, services },
    ...(needsSsh ? { knownHosts } : {}),
    checkout: { path: checkout, isThere: await isDirectory(checkout) },
    ...(script === undefined ? {} : { script: await lookAtScript(join(checkout, script)) }),
    strays:
      'problem' in strays ? strays : { count: strays.count, names: strays.entries.map(({ name }) => name) },
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

async function lookAtServices(checkout: string, node: string): Promise<ActionsFacts['services']> {
  const path = servicesFile(checkout, node);
  const services = await orProblem(readServices(checkout, node));
  // The path is told beside it.
  const known = `cannot read ${JSON.stringify(path)}: `;
  if ('problem' in services) return { path, problem: services.problem.replace(known, ''), unnamable: [] };
  const unnamable = [...services].filter((service) => !canNameActions(node, service));
  return { path, problem: undefined, unnamable };
}

async function isDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true;
}

async function listMissing(programs: readonly string[]): Promise<string[]> {
  const found = await Promise.all(programs.map((program) => findProgram(program)));
  return programs.filter((_, index) => found[index] === undefined);
}

/** What cannot be looked at hides nothing of the rest. */
export async function orProblem<T extends object>(work: Promise<T>): Promise<T | { problem: string }> {
  return await work.catch((error: unknown) => ({ problem: describeError(error) }));
}

async function failureOf(work: Promise<unknown>): Promise<string | undefined> {
  return await work.then(() => undefined, describeError);
}
