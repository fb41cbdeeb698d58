// How the engine fails, apart from being out of reach (UnavailableError) or refusing a request (InputError).
import { StepError } from '../errors.ts';

/** The engine could not do it; `status` is its HTTP status. */
export class EngineError extends StepError {
  readonly status: number;

  constructor(message: string, status: number, code = 'engine') {
    super(message, { code });
    this.status = status;
  }
}

/** The container is gone, where that is not what was wanted. */
export class ContainerMissingError extends StepError {
  constructor(action: string) {
    super(`cannot ${action}: no such container`, { code: 'container-missing' });
  }
}

/** Pull first, then try again. */
export class ImageMissingError extends StepError {
  readonly reference: string;

  constructor(reference: string) {
    super(`cannot create a container from image "${reference}": it is not on this machine`, {
      code: 'image-missing',
    });
    this.reference = reference;
  }
}

/** A container of that name exists already. */
export class NameTakenError extends StepError {
  readonly containerName: string;

  constructor(containerName: string) {
    super(`cannot create container "${containerName}": the name is in use`, { code: 'name-taken' });
    this.containerName = containerName;
  }
}

/** A pull that did not bring the image: `denied` and `image-not-found` are the registry's words, anything else is `pull`. */
export class PullError extends StepError {
  readonly reference: string;

  constructor(reference: string, reason: string, code: 'denied' | 'image-not-found' | 'pull') {
    super(`cannot pull image "${reference}": ${reason}`, { code });
    this.reference = reference;
  }
}

/** An answer of another shape than any engine gives; the connection turns it into UnavailableError. */
export class UnexpectedAnswer extends Error {}
