// Whom commands run as: the machine's own word about a user.
import type { BaseContext } from '../context.ts';
import { CommandError, ConfigError } from '../errors.ts';
import { runProgram } from '../exec/run.ts';

export type CommandUser = {
  /** Undefined: as we do. */
  ids: { uid: number; gid: number } | undefined;
  env: Readonly<Record<string, string>>;
};

const askMs = 10_000;
const lastId = 2 ** 32 - 2;

/** `root` is whoever we are. Throws ConfigError for a user that the machine does not have. */
export async function findUser({ signal }: Pick<BaseContext, 'signal'>, name: string): Promise<CommandUser> {
  if (name === 'root') return { ids: undefined, env: { HOME: '/root', USER: 'root', LOGNAME: 'root' } };
  const line = await askPasswd(name, signal);
  const [user = '', , uid = '', gid = '', , home = '/'] = line.split(':');
  if (!/^\d+$/.test(uid) || !/^\d+$/.test(gid)) {
    throw new ConfigError(`cannot run anything as ${JSON.stringify(name)}: the machine has no such user`);
  }
  const ids = { uid: Number(uid), gid: Number(gid) };
  // To the kernel the last number says: stay who you are.
  if (ids.uid > lastId || ids.gid > lastId) {
    throw new ConfigError(`cannot run anything as ${JSON.stringify(name)}: nobody can have its numbers`);
  }
  return {
    ids,
    env: { HOME: home, USER: user, LOGNAME: user },
  };
}

/** Empty where there is no such user. */
async function askPasswd(name: string, signal: AbortSignal): Promise<string> {
  try {
    const options = { timeoutMs: askMs, okStatuses: [0, 2], signal };
    return (await runProgram(['getent', 'passwd', '--', name], options)).stdout.trim();
  } catch (error) {
    if (error instanceof CommandError) throw new ConfigError(error.message, { cause: error });
    throw error;
  }
}
