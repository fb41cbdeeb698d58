// What is told of a look that has found nothing to do.
import { readInvocation } from '../config/environment.ts';

/** A timer comes each few seconds, and fills no journal with it. */
export function describeIdle(): string[] {
  return readInvocation().journal ? [] : ['nothing to do'];
}
