// `reeve config show`: the configuration that holds, with secrets hidden.
import { showConfig } from '../lib/config/show.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export function run({ base }: CommandInput): Promise<Outcome> {
  return showConfig(base.paths, base.overrides);
}
