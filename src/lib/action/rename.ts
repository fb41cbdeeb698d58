// Renames an action's file to a name that is free, in one step of the kernel's: what arrives under that name meanwhile is never replaced,
// and the file is under one name at any instant. Node.js has no call for it; mv has (renameat2, RENAME_NOREPLACE).
import { StepError } from '../errors.ts';
import { runProgram } from '../exec/run.ts';
import type { HeldDirectory } from '../state/held-directory.ts';
import { isThere } from './files.ts';

export type RenameEnd = 'renamed' | 'gone' | 'taken';

export async function renameToFree(
  source: HeldDirectory,
  target: HeldDirectory,
  name: string,
): Promise<RenameEnd> {
  const [from, to] = await Promise.all([source.handle.stat(), target.handle.stat()]);
  // It would copy then.
  if (from.dev !== to.dev)
    throw new StepError(`${source.path} and ${target.path} are on different file systems`);
  const words = [
    '--no-clobber',
    '--no-target-directory',
    '--verbose',
    '--',
    source.at(name),
    target.at(name),
  ];
  // Those before 9.2 end with 0 where the name is taken.
  const options = { timeoutMs: 30_000, okStatuses: [0, 1] };
  const { stdout, stderr } = await runProgram(['mv', ...words], options);
  // It tells what it has renamed, and nothing else there.
  if (stdout !== '') return 'renamed';
  if (!(await isThere(source, name))) return 'gone';
  if (await isThere(target, name)) return 'taken';
  throw new StepError(`cannot rename ${source.path}/${name}: ${stderr.trim()}`);
}
