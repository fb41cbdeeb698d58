// The bundle of a run's artifacts: when it is wanted, and how it is packed.
import type { Context } from '../../context.ts';
import { InternalError } from '../../errors.ts';
import { limits } from '../../ploy/limits.ts';
import type { JobType, TerminalStatus } from '../../ploy/wire.ts';
import type { WorkspacePaths } from './paths.ts';

export const bundleName = 'repo-artifacts';
/** The server takes none that is larger: whoever has one makes an event of it. */
export const maxBundleBytes = limits.uploadBytes;

export type BundleFacts = {
  jobType: JobType;
  /** Of its chain. */
  isLast: boolean;
  gatesDisabled: boolean;
  status: TerminalStatus;
};

/** On failure, after the last gate, and after the last mig where no gate follows. */
export function isBundleWanted({ jobType, isLast, gatesDisabled, status }: BundleFacts): boolean {
  if (status !== 'Success') return true;
  if (jobType === 'post_gate') return true;
  return jobType === 'mig' && isLast && gatesDisabled;
}

/** Undefined where there is no file. */
export async function buildArtifactBundle(
  _ctx: Context,
  _paths: WorkspacePaths,
  _signal: AbortSignal,
): Promise<{ file: string; sizeBytes: number } | undefined> {
  throw new InternalError('no bundle can be made yet');
}
