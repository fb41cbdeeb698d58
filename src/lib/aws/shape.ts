// What an answer holds. The SDK hands JSON on as it came: of a service that is another one, or broken, it has any shape.
import { UnavailableError } from '../errors.ts';

/** `action` completes "cannot ...". Throws UnavailableError where `read` meets something else than the service promises. */
export function readShape<Value>(action: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
    throw new UnavailableError(`cannot ${action}: an answer of another shape`, { code: 'answer' });
  }
}
