// `reeve config check`: every section and the files they name; all problems, not only the first.
import { checkConfig } from '../lib/config/check.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export function run({ base }: CommandInput): Promise<Outcome> {
  return Promise.resolve(checkConfig(base.paths, base.overrides));
}
