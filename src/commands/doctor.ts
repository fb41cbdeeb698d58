// `reeve doctor`: what is wrong here, one line each with the fix.
import { runDoctor } from '../lib/doctor/run.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ base }: CommandInput): Promise<Outcome> {
  return await runDoctor(base);
}
