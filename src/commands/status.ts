// `reeve status`: this node, or with --cluster every node in the store.
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ options, loadContext }: CommandInput): Promise<Outcome> {
  const ctx = await loadContext();
  if (options['cluster'] === true) {
    const { requireCluster } = await import('../lib/config/rules.ts');
    const { showCluster } = await import('../lib/status/cluster.ts');
    return await showCluster(ctx, requireCluster(ctx.config));
  }
  const { showNode } = await import('../lib/status/node.ts');
  return await showNode(ctx);
}
