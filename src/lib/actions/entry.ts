// One entry of the staging directory or of the inbox, as what it is: an action by its own word, or a refusal with its reason. What
// this node thinks of an action is asked elsewhere.
import { type Action, parseAction } from '../deploy-runner/action.ts';
import { contentKey, markerKey } from '../deploy-runner/key.ts';
import { parseActionFileName } from '../deploy-runner/names.ts';
import { describeError, InputError } from '../errors.ts';
import { type EntryName, openEntry } from './open.ts';

export type Entry =
  | { kind: 'action'; name: EntryName; key: string; action: Action; bytes: Buffer }
  /** It has an action's name: whoever waits for that action is told. */
  | { kind: 'refused'; name: EntryName; actionId: string; key: string; reason: string }
  /** Its name is no action's: nobody waits for it. */
  | { kind: 'foreign'; name: EntryName; reason: string };

/** Undefined where it has gone. Throws where the directory itself is the trouble. */
export async function readEntry(name: EntryName): Promise<Entry | undefined> {
  const actionId = parseActionFileName(name.text);
  if (actionId === undefined) return { kind: 'foreign', name, reason: "its name is no action's" };
  const opened = await openEntry(name.path);
  if (opened.kind === 'gone') return undefined;
  if (opened.kind === 'refused') {
    const { reason, mark } = opened;
    return { kind: 'refused', name, actionId, key: contentKey(actionId, `no file: ${mark}`), reason };
  }
  const { bytes } = opened;
  const parsed = parse(bytes, actionId);
  if (typeof parsed !== 'string') {
    return { kind: 'action', name, key: markerKey(parsed, bytes), action: parsed, bytes };
  }
  return { kind: 'refused', name, actionId, key: contentKey(actionId, bytes), reason: parsed };
}

/** The reason in words where it is none. */
function parse(bytes: Buffer, actionId: string): Action | string {
  try {
    const action = parseAction(bytes);
    if (action.actionId === actionId) return action;
    return `action_id is ${JSON.stringify(action.actionId)}, unlike the name of its file`;
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return describeError(error);
  }
}
