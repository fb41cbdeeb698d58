// `reeve units list`: how the installed units stand.
import type { Outcome } from '../lib/outcome.ts';
import { listUnits } from '../lib/systemd/list.ts';
import type { CommandInput } from './command.ts';

export async function run({ base }: CommandInput): Promise<Outcome> {
  return await listUnits(base);
}
