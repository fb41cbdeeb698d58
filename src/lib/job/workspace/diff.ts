// What a job has changed in the workspace, as a patch against the commit that was there before it: what gates have left since is
// in it as well, and it is the same again once the job's own baseline has been made.
import { createWriteStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { limits } from '../../ploy/limits.ts';
import { type Looked, stageAfter } from './before.ts';
import { askGit, type GitContext, streamGit } from './git.ts';
import type { WorkspacePaths } from './paths.ts';
import { parseShortStat } from './short-stat.ts';

export type Diff = {
  /** The whole patch. */
  file: string;
  /** Undefined where it is larger than the server takes. */
  gzip: Uint8Array | undefined;
  filesChanged: number;
  linesAdded: number;
  linesRemoved: number;
};

const diffArgs = ['diff-index', '--cached', '--find-renames', '--no-ext-diff', '--no-textconv', '--no-color'];

/** Undefined where nothing has changed. Throws CommandError or StepError. */
export async function collectDiff(
  { lookAfter }: GitContext & Looked,
  paths: WorkspacePaths,
  signal: AbortSignal,
): Promise<Diff | undefined> {
  const git = { signal };
  const { commit, treeOut, commitTree } = await (lookAfter?.() ?? stageAfter(git, paths));
  const stat =
    treeOut === commitTree
      ? undefined
      : parseShortStat(await askGit(git, paths, [...diffArgs, '--shortstat', commit]));
  if (stat === undefined) {
    await rm(paths.diff, { force: true });
    return undefined;
  }
  // With what is binary it can be applied; a build's output that nobody ignores may be too much for that.
  const gzip =
    (await writePatch(git, paths, [...diffArgs, '--patch', '--binary', commit])) ??
    (await writePatch(git, paths, [...diffArgs, '--patch', commit]));
  return { file: paths.diff, gzip, ...stat };
}

/** Undefined where it is too large to be uploaded; it is on disk as a whole even so. */
async function writePatch(
  git: GitContext,
  paths: WorkspacePaths,
  args: readonly string[],
): Promise<Uint8Array | undefined> {
  await rm(paths.diff, { force: true });
  await mkdir(dirname(paths.diff), { recursive: true, mode: 0o750 });
  const kept = createBoundedGzip();
  const patch = async function* (): AsyncGenerator<Uint8Array> {
    for await (const chunk of streamGit(git, paths, args)) {
      await kept.write(chunk);
      yield chunk;
    }
  };
  await pipeline(patch, createWriteStream(paths.diff, { mode: 0o600, flags: 'wx' }));
  return await kept.end();
}

/** Keeps no more than can be uploaded. */
function createBoundedGzip() {
  const parts: Buffer[] = [];
  let size = 0;
  const gzip = createGzip();
  const sink = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      size += chunk.length;
      if (size <= limits.uploadBytes) parts.push(chunk);
      else parts.length = 0;
      done();
    },
  });
  const finished = pipeline(gzip, sink);
  finished.catch(() => {});
  return {
    write: (chunk: Uint8Array) =>
      new Promise<void>((resolve, reject) => {
        gzip.write(chunk, (error) => (error ? reject(error) : resolve()));
      }),
    end: async (): Promise<Uint8Array | undefined> => {
      gzip.end();
      await finished;
      return size > limits.uploadBytes ? undefined : Buffer.concat(parts);
    },
  };
}
