// Upgraded connections, counted apart from all others over every worker, and ended. Handshakes are among them.
import type { BaseContext } from '../context.ts';
import { UnavailableError } from '../errors.ts';
import { parseSessionIds, parseSessions } from '../haproxy/parse-workers.ts';
import { askWorkers, type WorkerAnswers } from '../haproxy/workers.ts';
import { proxyPaths, proxyService } from './paths.ts';

/** Of the proxy's file. */
const tunnelsBackend = 'tunnels';
const tunnelsServer = 'tunnels/instance';

type TunnelsContext = Pick<BaseContext, 'paths' | 'signal'>;

export type Tunnels = {
  total: number;
  workers: readonly { pid: number; old: boolean; tunnels: number }[];
};

/** ActiveTunnels of the seed. Throws UnavailableError. */
export async function countTunnels({ paths, signal }: TunnelsContext): Promise<Tunnels> {
  const { masterSocket } = proxyPaths(paths);
  return sumTunnels(await askWorkers(masterSocket, ['show stat'], { signal, service: proxyService }));
}

/** Of workers whose last answer is that to `show stat`. */
export function sumTunnels(answers: readonly WorkerAnswers[]): Tunnels {
  const workers = answers.map(({ pid, isOld, answers: all }) => ({
    ...{ pid, old: isOld },
    tunnels: requireCount(parseSessions(all.at(-1) ?? '', tunnelsBackend), pid),
  }));
  return { total: workers.reduce((sum, { tunnels }) => sum + tunnels, 0), workers };
}

/**
 * Ends them all; answers how many. The current worker can end those of a server, an old one only single sessions. There they
 * are named by their address in memory, which in a worker that takes nothing new is nobody else's.
 */
export async function closeTunnels({ paths, signal }: TunnelsContext): Promise<number> {
  const { masterSocket } = proxyPaths(paths);
  const options = { signal, service: proxyService };
  const seen = await askWorkers(
    masterSocket,
    ({ isOld }) => (isOld ? ['show sess'] : ['show stat', `shutdown sessions server ${tunnelsServer}`]),
    options,
  );
  const inOld = new Map(
    seen.flatMap(({ pid, isOld, answers: [shown = ''] }) =>
      isOld ? [[pid, parseSessionIds(shown, tunnelsBackend)] as const] : [],
    ),
  );
  const current = seen
    .filter(({ isOld }) => !isOld)
    .reduce(
      (sum, { pid, answers: [stats = ''] }) => sum + requireCount(parseSessions(stats, tunnelsBackend), pid),
      0,
    );
  if ([...inOld.values()].every((ids) => ids.length === 0)) return current;
  const ended = await askWorkers(
    masterSocket,
    ({ pid }) => (inOld.get(pid) ?? []).map((id) => `shutdown session ${id}`),
    options,
  );
  // One that has ended by itself meanwhile is answered "No such session".
  return current + ended.flatMap(({ answers }) => answers).filter((answer) => answer === '').length;
}

function requireCount(count: number | undefined, pid: number): number {
  if (count !== undefined) return count;
  const why = `its statistics have no backend ${JSON.stringify(tunnelsBackend)}`;
  throw new UnavailableError(`cannot count the tunnels of HAProxy's worker ${pid}: ${why}`);
}
