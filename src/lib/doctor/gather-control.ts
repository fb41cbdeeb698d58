// Looks at the tree of a control host of actions: itself, never what a link in it leads to.
import { access, constants, lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { surveyControl } from '../actions/control/survey.ts';
import type { ActionsConfig } from '../config/config.ts';
import { actionStates, deployRoot, eventsRoot, stateDirectory } from '../deploy-runner/layout.ts';
import { orProblem } from './gather-actions.ts';
import { lookAt } from './gather-files.ts';
import { type ControlFacts, eventsName, type TreeDirectory } from './judge-control.ts';
import type { World } from './world.ts';

export async function gatherControl(
  { base }: World,
  { root, ...actions }: ActionsConfig & { root: string },
): Promise<ControlFacts> {
  const directories = await Promise.all([
    lookAtDirectory(root, '.'),
    ...actionStates.map((state) => lookAtDirectory(stateDirectory(root, state), state)),
    lookAtDirectory(join(root, ...deployRoot), 'deploy'),
    lookAtDirectory(eventsRoot(root), eventsName),
  ]);
  const links = await Promise.all([join(root, ...deployRoot), eventsRoot(root)].map(listLinks));
  const survey = await orProblem(surveyControl({ ...actions, root }, base));
  return { root, directories, links: links.flat(), survey };
}

async function lookAtDirectory(path: string, name: string): Promise<TreeDirectory> {
  const about = await lstat(path).catch(() => undefined);
  const writable = await access(path, constants.W_OK).then(
    () => true,
    () => false,
  );
  return {
    ...{ name, writable, isDirectory: about?.isDirectory() ?? false, device: about?.dev },
    ...{ isLink: about?.isSymbolicLink() ?? false, ...(await lookAt(path)) },
  };
}

/** What cannot be read is told of as a directory. */
async function listLinks(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isSymbolicLink()).map(({ name }) => join(path, name));
}
