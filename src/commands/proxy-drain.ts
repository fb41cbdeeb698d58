// `reeve proxy drain`: what ExecStop= of the proxy's unit runs.
import { defaultDrainMs } from '../lib/config/rules.ts';
import type { Outcome } from '../lib/outcome.ts';
import { drainProxy, endDrain } from '../lib/proxy/drain.ts';
import type { CommandInput } from './command.ts';
import { loadCommandsLeniently } from './leniently.ts';

export async function run(input: CommandInput): Promise<Outcome> {
  if (input.options['end'] === true) return await endDrain(input.base);
  const commands = await loadCommandsLeniently(input);
  return await drainProxy(input.base, { boundMs: commands?.proxyDrainTimeoutMs ?? defaultDrainMs });
}
