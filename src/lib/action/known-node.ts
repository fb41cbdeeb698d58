// Whether a node was ever set up on this control host, which has its directories made beforehand. Read-only.
import { type FoundAction, redeployType } from '../actions/control/found.ts';
import { listEntries, mostNames } from '../actions/open.ts';
import {
  datedEventsNames,
  deployNames,
  eventDatePattern,
  eventsRoot,
  nodeEventsNames,
} from '../deploy-runner/layout.ts';
import { ReeveError, systemErrorCode } from '../errors.ts';
import { type HeldDirectory, withDirectory } from '../state/held-directory.ts';

/** What people have to know before they approve it; null where nothing speaks against its node. Other executors know other nodes. */
export async function findNodeProblem(root: string, { action }: FoundAction): Promise<string | null> {
  const { type, node } = action;
  if (type !== redeployType || (await isKnown(root, node))) return null;
  return `node ${node} has never been set up here: there is neither deploy/${node} in ${root} nor ${node} in ${eventsRoot(root)}`;
}

async function isKnown(root: string, node: string): Promise<boolean> {
  const events = eventsRoot(root);
  if (await isThere(root, deployNames(node))) return true;
  if (await isThere(events, nodeEventsNames(node))) return true;
  for (const date of await listDates(events)) {
    if (await isThere(events, datedEventsNames(date, node))) return true;
  }
  return false;
}

/** What cannot be looked at is there: others tell what is wrong with it. */
async function isThere(top: string, names: readonly string[]): Promise<boolean> {
  try {
    return await withDirectory(top, names, async () => true);
  } catch (error) {
    if (!(error instanceof ReeveError)) throw error;
    return systemErrorCode(error) !== 'ENOENT';
  }
}

async function listDates(events: string): Promise<string[]> {
  const read = async (directory: HeldDirectory): Promise<string[]> => {
    const { names } = await listEntries(directory.at(), mostNames, directory.path);
    return names.map(({ text }) => text).filter((name) => eventDatePattern.test(name));
  };
  return await withDirectory(events, [], read).catch((error: unknown) => {
    if (!(error instanceof ReeveError)) throw error;
    return [];
  });
}
