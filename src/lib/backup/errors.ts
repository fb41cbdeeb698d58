// What a backup can fail with beside what its parts throw.
import { StepError } from '../errors.ts';

/** Something of a dump may still run in the container or the server, and hold locks there. The next run ends it. */
export class OrphanError extends StepError {
  constructor(cause: string) {
    super(`what is left of a dump in the container could not be ended (orphan-possible): ${cause}`, {
      code: 'orphan-possible',
    });
  }
}
