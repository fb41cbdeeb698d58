// `reeve proxy drain`: what ExecStop= of the proxy's unit runs.
import { requireSection } from '../lib/config/rules.ts';
import type { Outcome } from '../lib/outcome.ts';
import { drainProxy, endDrain } from '../lib/proxy/drain.ts';
import { loadLeniently } from '../lib/proxy/sync.ts';
import type { CommandInput } from './command.ts';

/** Of the seed. */
const defaultBoundMs = 30_000;

export async function run({ base, options, loadContext }: CommandInput): Promise<Outcome> {
  if (options['end'] === true) return await endDrain(base);
  const load = async () => requireSection((await loadContext()).config, 'commands');
  // Under systemd the proxy is stopped in any case: better in order.
  const commands = await loadLeniently(load, base.log);
  return await drainProxy(base, { boundMs: commands?.proxyDrainTimeoutMs ?? defaultBoundMs });
}
