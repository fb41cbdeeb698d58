// `reeve units verify`: syntax, sandbox and timers of the unit files.
import { resolve } from 'node:path';
import type { Outcome } from '../lib/outcome.ts';
import { verifyUnits } from '../lib/systemd/verify.ts';
import type { CommandInput } from './command.ts';

export async function run({ base, options }: CommandInput): Promise<Outcome> {
  const { root } = options;
  return await verifyUnits(base, { root: typeof root === 'string' ? resolve(root) : '/' });
}
