// `reeve node iam`: flags to one call.
import { describePolicy } from '../lib/iam/run.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ options, loadContext }: CommandInput): Promise<Outcome> {
  const { role, node, account } = options;
  return describePolicy(await loadContext(), {
    ...(typeof role === 'string' ? { roles: role } : {}),
    ...(typeof node === 'string' ? { nodeId: node } : {}),
    ...(typeof account === 'string' ? { account } : {}),
  });
}
