// `reeve failed UNIT`: what OnFailure=reeve-failed@%n.service runs.
import { readMonitoredEnd } from '../lib/config/environment.ts';
import { loadConfigAnyway } from '../lib/config/load.ts';
import { recordFailure } from '../lib/failure/run.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ base, args }: CommandInput): Promise<Outcome> {
  return await recordFailure(base, {
    unit: args[0] ?? '',
    end: readMonitoredEnd(),
    loadConfig: () => loadConfigAnyway(base.paths, base.overrides),
  });
}
