// `reeve deploy-action`: perform the approved redeploys in the inbox.
import { runDeployAction } from '../lib/deploy-action/run.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ base, options, loadContext }: CommandInput): Promise<Outcome> {
  const waitMs = parseWait(options['wait']);
  if (options['watch'] === true) {
    const { watchDeployAction } = await import('../lib/deploy-action/watch.ts');
    return await watchDeployAction(base, { waitMs, loadContext });
  }
  return await runDeployAction(await loadContext(), { waitMs });
}
