// What a unit runs whose service goes on in any case: a configuration that cannot be read is told, and does not end it.

import type { CommandsConfig } from '../lib/config/config.ts';
import { requireSection } from '../lib/config/rules.ts';
import { ConfigError, describeError } from '../lib/errors.ts';
import type { CommandInput } from './command.ts';

/** Undefined where it cannot be read, or has no such section. */
export async function loadCommandsLeniently({
  base,
  loadContext,
}: Pick<CommandInput, 'base' | 'loadContext'>): Promise<CommandsConfig | undefined> {
  try {
    return requireSection((await loadContext()).config, 'commands');
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    base.log.warning(`the proxy goes on without its configuration: ${describeError(error)}`);
    return undefined;
  }
}
