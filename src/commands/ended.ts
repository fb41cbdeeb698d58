// `reeve ended CONCERN`: what ExecStopPost= runs.
import { readServiceEnd } from '../lib/config/environment.ts';
import { recordEnd } from '../lib/failure/ended.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ base, args }: CommandInput): Promise<Outcome> {
  return await recordEnd(base, { concern: args[0] ?? '', end: readServiceEnd() });
}
