// `reeve history`: what was done, when, by which run, and why.
import { isDomain } from '../lib/cluster/rules.ts';
import type { Outcome } from '../lib/outcome.ts';
import { foldLines } from '../lib/report/table.ts';
import { type HistoryEvent, readHistory } from '../lib/state/history.ts';
import type { CommandInput } from './command.ts';
import { parseServiceKey, parseSince } from './flags.ts';

export async function run({ base, args, options }: CommandInput): Promise<Outcome> {
  const [target] = args;
  const isOfEdge = target !== undefined && !target.includes('/') && isDomain(target);
  const key = isOfEdge ? undefined : parseServiceKey(target);
  const since = parseSince(options['since'], base.clock.now());
  const [project, service] = key?.split('/') ?? [];
  const events = await readHistory(base.paths, {
    ...(since === undefined ? {} : { since }),
    ...(project === undefined ? {} : { project }),
    ...(service === undefined ? {} : { service }),
    ...(isOfEdge && { concern: 'edge', mention: target.toLowerCase() }),
  });
  const text = events.length === 0 ? ['nothing was done'] : events.map(describeEvent);
  return { outcome: 'done', text, data: { events } };
}

function describeEvent(event: HistoryEvent): string {
  const subject = event.project === undefined ? '' : ` ${event.project}/${event.service ?? ''}`;
  const replica = event.replica === undefined ? '' : `#${event.replica}`;
  // The release has failed, not its abort.
  const result = event.outcome === 'done' || event.action === 'abort' ? '' : ` ${event.outcome}`;
  return `${event.at}  ${event.run}  ${event.action}${subject}${replica}${result}: ${foldLines(event.error ?? event.reason)}`;
}
