// The artifacts of a run as one archive. Made by tar into a file first; what is in it depends on the files alone, not on when or
// in which order they came. Links that leave stay out: whoever unpacks it would follow them.
import { createReadStream } from 'node:fs';
import { mkdir, readdir, readFile, readlink, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { BaseContext } from '../../context.ts';
import { runProgram, streamProgram } from '../../exec/run.ts';
import { limits } from '../../ploy/limits.ts';
import type { JobType } from '../../ploy/wire.ts';
import { fileError } from '../../state/file-error.ts';
import { isInside } from './members.ts';
import type { WorkspacePaths } from './paths.ts';

export type ArtifactBundle =
  | { kind: 'bundle'; tarGz: Uint8Array; name: 'repo-artifacts' }
  | { kind: 'none' }
  /** Told as an event: no server takes it. */
  | { kind: 'too-large'; reason: string };

const tarMs = 10 * 60_000;
/** Compressed it may be a thousandth of that; packing for ever is no use. */
const maxTarBytes = 4 * 1024 ** 3;

export function isArtifactDue(job: {
  jobType: JobType;
  isSuccess: boolean;
  isLast: boolean;
  isGateDisabled: boolean;
}): boolean {
  if (!job.isSuccess) return true;
  if (job.jobType === 'post_gate') return true;
  return job.jobType === 'mig' && job.isLast && job.isGateDisabled;
}

export async function buildArtifactBundle(
  ctx: Pick<BaseContext, 'signal'>,
  paths: WorkspacePaths,
): Promise<ArtifactBundle> {
  const { names, hasFiles } = await listMembers(paths.artifacts);
  if (!hasFiles) return { kind: 'none' };
  const archive = join(paths.scratch, 'repo-artifacts.tar');
  try {
    await mkdir(paths.scratch, { recursive: true, mode: 0o700 });
    const size = await packFiles(ctx, paths.artifacts, names, archive);
    if (size > limits.uploadBytes) {
      return {
        kind: 'too-large',
        reason: `the artifacts are more than the ${limits.uploadBytes} bytes that the server takes, compressed; they are in ${paths.artifacts}`,
      };
    }
    return { kind: 'bundle', tarGz: await readFile(archive), name: 'repo-artifacts' };
  } finally {
    await rm(archive, { force: true });
  }
}
