// The mirror of what lies at the source: brought up to date by rsync, which alone writes there. Nothing is ever removed at the source,
// and from here nothing on the word of a list that may not be whole.
import { rm } from 'node:fs/promises';
import { listEntries } from '../actions/open.ts';
import { actionPlaces } from '../actions/places.ts';
import type { ActionsConfig } from '../config/config.ts';
import type { BaseContext } from '../context.ts';
import { maxActionBytes } from '../deploy-runner/names.ts';
import { type ReeveError, StepError } from '../errors.ts';
import { buildPullArgs } from '../rsync/args.ts';
import { type Listed, parseListedLine } from '../rsync/listing.ts';
import { findRemoteShell, runRsync } from '../rsync/run.ts';
import { ensureDirectory } from '../state/directory.ts';
import { fileError } from '../state/file-error.ts';
import type { PullFacts } from './facts.ts';
import { mostEntries } from './limits.ts';
import { markLeft } from './marks.ts';

/** For the whole pull; rsync and ssh notice a dead link before. */
export const pullMs = 120_000;

type MirrorContext = Pick<BaseContext, 'paths' | 'signal' | 'log'>;

/** `errors`: what came nevertheless is whole, and is of use. */
export type MirrorEnd = Pick<PullFacts, 'seen' | 'listed' | 'left'> & { errors: readonly ReeveError[] };

export async function updateMirror(ctx: MirrorContext, { pull }: ActionsConfig): Promise<MirrorEnd> {
  const { staging } = actionPlaces(ctx.paths);
  const place = JSON.stringify(pull);
  await ensureDirectory(staging).catch((error: unknown) => {
    throw fileError('make', staging, error);
  });
  const list = collectList();
  const remoteShell = await findRemoteShell(ctx, pull, 'pull');
  const shell = remoteShell === undefined ? {} : { remoteShell };
  const { verdict, error } = await runRsync(ctx, {
    what: `pull from ${place}`,
    args: buildPullArgs({ ...shell, from: pull, to: staging, maxFileBytes: maxActionBytes }),
    timeoutMs: pullMs,
    // A block more: a file of the very size that is allowed is no error.
    maxFileBytes: maxActionBytes * 2,
    onLine: list.add,
  });
  if (verdict === 'stopped' || (await listEntries(staging, mostEntries)).isCut) {
    await rm(staging, { recursive: true, force: true }).catch((failure: unknown) => {
      throw fileError('remove', staging, failure);
    });
    const cause = `there are more than ${mostEntries} entries, and none of them is taken`;
    return {
      ...{ seen: new Set(), listed: undefined, left: [] },
      errors: [new StepError(`cannot pull from ${place}: ${cause}`, { code: 'too-many' })],
    };
  }
  if (verdict === 'vanished') ctx.log.info(`some entries at ${place} went while they were pulled`);
  const { names, left } = list.read();
  const marked = await markLeft(ctx, { from: pull, left, ...shell });
  const listed = verdict === 'complete' ? names : undefined;
  const errors = [error, marked.error].filter((one) => one !== undefined);
  return { seen: names, listed, left: marked.left, errors };
}

function collectList() {
  const entries: Listed[] = [];
  let lines = 0;
  return {
    add: (line: string): boolean => {
      lines += 1;
      const listed = parseListedLine(line);
      if (listed !== undefined) entries.push(listed);
      // Lines that say nothing of an entry are few, unless somebody sends them on purpose.
      return entries.length <= mostEntries && lines <= mostEntries * 2;
    },
    read: () => ({
      names: new Set(entries.flatMap(({ kind, name }) => (kind === 'file' ? [name] : []))),
      left: entries.flatMap((entry) => {
        if (entry.kind === 'skipped') return [{ name: entry.name, reason: entry.reason }];
        return entry.kind === 'directory' ? [{ name: entry.name, reason: 'it is a directory' }] : [];
      }),
    }),
  };
}
