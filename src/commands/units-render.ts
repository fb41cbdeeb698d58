// `reeve units render`: the drop-ins of this configuration, shown, compared with what is there, or put in place.
import { resolve } from 'node:path';
import { UsageError } from '../lib/errors.ts';
import type { Outcome } from '../lib/outcome.ts';
import { compareUnits, renderUnits, writeUnits } from '../lib/systemd/run.ts';
import type { CommandInput } from './command.ts';

export async function run({ options, loadContext }: CommandInput): Promise<Outcome> {
  const { diff, write } = options;
  if (diff === true && write === true) throw new UsageError('give --diff or --write, not both');
  const root = typeof options['root'] === 'string' ? resolve(options['root']) : '/';
  const ctx = await loadContext();
  if (write === true) return await writeUnits(ctx, { root });
  return diff === true ? await compareUnits(ctx, { root }) : renderUnits(ctx, { root });
}
