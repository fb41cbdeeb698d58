// `reeve claim`: take jobs from ploy's server for a window.
import { parseWindow } from '../lib/claim/parse.ts';
import { runClaim } from '../lib/claim/run.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ base, options, loadContext }: CommandInput): Promise<Outcome> {
  const windowMs = parseWindow(options['window']);
  const waitMs = parseWait(options['wait']);
  return await runClaim(base, { windowMs, waitMs, loadContext });
}
