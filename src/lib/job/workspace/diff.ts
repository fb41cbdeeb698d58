// What a job has changed in the workspace, as a patch against the baseline, and the commit that makes it the next baseline.
import type { Context } from '../../context.ts';
import { InternalError } from '../../errors.ts';
import type { WorkspacePaths } from './paths.ts';

export type Diff = {
  /** The whole patch. */
  file: string;
  /** Undefined where it is larger than the server takes. */
  gzip: Uint8Array | undefined;
  filesChanged: number;
  linesAdded: number;
  linesRemoved: number;
};

/** Undefined where nothing has changed. Throws CommandError or StepError. */
export async function collectDiff(
  _ctx: Context,
  _paths: WorkspacePaths,
  _signal: AbortSignal,
): Promise<Diff | undefined> {
  throw new InternalError('no diff can be made yet');
}

/** After a mig that has succeeded. False where nothing has changed. */
export async function commitBaseline(
  _ctx: Context,
  _paths: WorkspacePaths,
  _about: { runId: string; jobId: string; signal: AbortSignal },
): Promise<boolean> {
  throw new InternalError('no baseline can be made yet');
}
