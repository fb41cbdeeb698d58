// What a pull has left at the source is told once, and again where another such thing has come under its name: so it is asked for what
// a pull does not say. Another connection, and only as long as something with an action's name lies there that is none.
import type { BaseContext } from '../context.ts';
import { maxActionBytes, parseActionFileName } from '../deploy-runner/names.ts';
import type { ReeveError } from '../errors.ts';
import { buildListArgs } from '../rsync/args.ts';
import { type Detail, parseDetailLine } from '../rsync/listing.ts';
import { runRsync } from '../rsync/run.ts';
import type { LeftEntry } from './facts.ts';
import { mostEntries } from './limits.ts';

/** For the list, just after a pull. */
export const listMs = 30_000;

type Marked = { left: LeftEntry[]; error?: ReeveError };

type Place = { from: string; remoteShell?: string };

export async function markLeft(
  ctx: Pick<BaseContext, 'signal'>,
  { left, ...place }: Place & { left: readonly LeftEntry[] },
): Promise<Marked> {
  const isWaitedFor = ({ name }: LeftEntry): boolean => parseActionFileName(name) !== undefined;
  if (!left.some(isWaitedFor)) return { left: [...left] };
  const details = new Map<string, Detail>();
  let lines = 0;
  const { verdict, error } = await runRsync(ctx, {
    what: `list ${JSON.stringify(place.from)}`,
    args: buildListArgs(place),
    timeoutMs: listMs,
    onLine: (line) => {
      lines += 1;
      const detail = parseDetailLine(line);
      if (detail !== undefined) details.set(detail.name, detail);
      return lines <= mostEntries * 2;
    },
  });
  const isWhole = verdict === 'complete';
  const marked = left.flatMap((entry) => {
    if (!isWaitedFor(entry)) return [entry];
    const detail = details.get(entry.name);
    if (detail === undefined) return isWhole ? [] : [entry];
    // It came in the place of what was left: the next pull takes it.
    if (detail.isFile && detail.sizeBytes <= maxActionBytes) return [];
    return [{ ...entry, mark: detail.mark }];
  });
  return { left: marked, ...(error === undefined ? {} : { error }) };
}
