// Who decides, as it stands in an action's history.
import { userInfo } from 'node:os';
import { readSudoUser } from '../config/environment.ts';

/** `operator-NAME`: whoever became root by sudo has a name of their own. */
export function readOperator(): string {
  const name = (readSudoUser() ?? userName()).replaceAll(/[^A-Za-z0-9._-]/g, '_').slice(0, 64);
  return `operator-${name}`;
}

/** A user id without an entry in the user database has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'unknown';
  }
}
