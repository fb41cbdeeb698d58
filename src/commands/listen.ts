// `reeve listen`: wait for notifications for a window.
import { parseWindow } from '../lib/listen/parse.ts';
import { runListen } from '../lib/listen/run.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ base, options, loadContext }: CommandInput): Promise<Outcome> {
  const windowMs = parseWindow(options['window']);
  return await runListen(base, { windowMs, waitMs: parseWait(options['wait']), loadContext });
}
