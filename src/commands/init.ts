// `reeve init`: flags to one call.
import { readRegion } from '../lib/config/environment.ts';
import { initNode } from '../lib/init/run.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export function run({ base, options }: CommandInput): Promise<Outcome> {
  const { node, role, store, cluster, region, endpoint } = options;
  const regionAround = readRegion();
  return initNode(base, {
    ...(typeof node === 'string' ? { nodeId: node } : {}),
    ...(typeof role === 'string' ? { role } : {}),
    ...(typeof store === 'string' ? { store } : {}),
    ...(typeof cluster === 'string' ? { clusterId: cluster } : {}),
    ...(typeof region === 'string' ? { region } : {}),
    ...(regionAround === undefined ? {} : { regionAround }),
    ...(typeof endpoint === 'string' ? { endpoint } : {}),
  });
}
