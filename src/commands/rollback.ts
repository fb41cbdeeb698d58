// `rollback P/S`: the service as an earlier deploy had it.
import { UsageError } from '../lib/errors.ts';
import type { Outcome } from '../lib/outcome.ts';
import { readReleaseOptions } from '../lib/release/options.ts';
import { rollback } from '../lib/release/rollback.ts';
import type { CommandInput } from './command.ts';
import { requireServiceKey } from './flags.ts';

export async function run(input: CommandInput): Promise<Outcome> {
  const request = {
    ...readReleaseOptions(input.options),
    key: requireServiceKey(input.args[0] ?? ''),
    to: readTo(input.options['to']),
  };
  return await rollback(await input.loadContext(), request);
}

function readTo(to: unknown): number {
  if (to === undefined) return 1;
  if (/^[1-9]\d?$/.test(String(to))) return Number(to);
  throw new UsageError(
    `--to counts deploys back from the present one, 1 being the last: not "${String(to)}"`,
  );
}
