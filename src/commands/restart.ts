// `restart P/S`: every replica of the service anew, on every node that has it.
import type { Outcome } from '../lib/outcome.ts';
import { readReleaseOptions } from '../lib/release/options.ts';
import { restart } from '../lib/release/rollback.ts';
import type { CommandInput } from './command.ts';
import { requireServiceKey } from './flags.ts';

export async function run(input: CommandInput): Promise<Outcome> {
  const request = { ...readReleaseOptions(input.options), key: requireServiceKey(input.args[0] ?? '') };
  return await restart(await input.loadContext(), request);
}
