// The keys of what is refused without having been read. Pure.
import { contentKey } from '../deploy-runner/key.ts';
import { parseActionFileName } from '../deploy-runner/names.ts';
import type { LeftEntry } from './facts.ts';

/** Undefined where nobody waits for it, or nobody could tell which one it is. */
export function identifyLeft({
  name,
  reason,
  mark,
}: LeftEntry): { actionId: string; key: string } | undefined {
  const actionId = parseActionFileName(name);
  if (actionId === undefined || mark === undefined) return undefined;
  return { actionId, key: contentKey(actionId, `left: ${reason}: ${mark}`) };
}
