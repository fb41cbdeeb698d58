// What the server likes to know of a job besides its end: its image, and the packages that a gate has found. Missing it is told
// and changes nothing about the job.
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { describeError, InputError, systemErrorCode } from '../errors.ts';
import { parseSbom, sbomName } from '../ploy/sbom.ts';
import type { JobSession } from './session.ts';
import type { WorkspacePaths } from './workspace/paths.ts';

/** The server takes no larger body. */
const maxSbomBytes = 64 * 1024 * 1024;

export async function tellImage(session: JobSession, image: string): Promise<void> {
  await orWarn(session, () => session.controlPlane.saveImage(session.claim.jobId, image));
}

/** Of a gate. Where it has left none, there is nothing to tell. */
export async function tellPackages(session: JobSession, { share }: WorkspacePaths): Promise<void> {
  await orWarn(session, async () => {
    const text = await readSbom(join(share, sbomName));
    if (text === undefined) return;
    await session.controlPlane.saveSbom(session.claim.jobId, parseSbom(text));
  });
}

/** The container has written it: never through a link, and nothing that does not end. */
async function readSbom(path: string): Promise<string | undefined> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stats = await file.stat();
    if (!stats.isFile()) throw new InputError('it is no file');
    if (stats.size > maxSbomBytes) throw new InputError(`it has more than ${maxSbomBytes} bytes`);
    return await file.readFile('utf8');
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw new InputError(`cannot read the SBOM ${path}: ${describeError(error)}`, { cause: error });
  }
}

async function orWarn(session: JobSession, tell: () => Promise<void>): Promise<void> {
  try {
    await tell();
  } catch (error) {
    session.requireGoingOn();
    await session.tell('warn', describeError(error));
  }
}
