// `hold`: timers leave a service, or this whole node, alone for a while. Needs no configuration.
import { UsageError } from '../lib/errors.ts';
import { nodeTarget } from '../lib/hold/holds.ts';
import { endHolds, listHolds, setHold } from '../lib/hold/run.ts';
import type { Outcome } from '../lib/outcome.ts';
import { parseDuration } from '../lib/time.ts';
import type { CommandInput } from './command.ts';
import { requireServiceKey } from './flags.ts';

const longestMs = 366 * 24 * 60 * 60_000;

export async function run({ base, args, options }: CommandInput): Promise<Outcome> {
  const target = readTarget(args[0], options['node'] === true);
  if (options['end'] === true) return await endHolds(base, target);
  if (target !== undefined) return await setHold(base, { target, ...readTerms(options) });
  if (options['for'] !== undefined || options['reason'] !== undefined) {
    throw new UsageError('nothing to hold: name PROJECT/SERVICE, or --node');
  }
  return await listHolds(base);
}

function readTarget(service: string | undefined, node: boolean): string | undefined {
  if (service !== undefined && node) throw new UsageError('hold either a service or --node');
  if (node) return nodeTarget;
  return service === undefined ? undefined : requireServiceKey(service);
}

function readTerms(options: Readonly<Record<string, unknown>>): { forMs: number; reason: string } {
  const { for: duration, reason } = options;
  if (typeof duration !== 'string') throw new UsageError('a hold has an end: say --for, such as --for 1h');
  const forMs = parseDuration(duration);
  if (forMs === undefined || forMs === 0)
    throw new UsageError(`${JSON.stringify(duration)} is no duration: say --for 90s, 1h30m or 2d`);
  if (forMs > longestMs)
    throw new UsageError('a hold of more than a year is a service to remove: hold it for less');
  if (typeof reason !== 'string' || reason.trim() === '')
    throw new UsageError('a hold has a reason: say --reason TEXT');
  // One line, as it stands in status, plan and the journal.
  return { forMs, reason: reason.trim().replaceAll(/\p{Cc}+/gu, ' ') };
}
