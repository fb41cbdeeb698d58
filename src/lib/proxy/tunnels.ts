// Upgraded connections, counted apart from all others over every worker, and ended. Handshakes are among them.
import type { BaseContext } from '../context.ts';
import { UnavailableError } from '../errors.ts';
import { parseSessionIds, parseSessions, type Worker } from '../haproxy/parse-workers.ts';
import { askWorkers, type WorkerAnswers } from '../haproxy/workers.ts';
import { proxyPaths, proxyService } from './paths.ts';

/** Of the proxy's file. */
const tunnelsBackend = 'tunnels';
const tunnelsServer = 'tunnels/instance';

/** `timeoutMs`: of each question, and for a HAProxy that is just away. */
type TunnelsContext = Pick<BaseContext, 'paths' | 'signal'> & { timeoutMs?: number };

export type Tunnels = {
  total: number;
  workers: readonly { pid: number; old: boolean; tunnels: number }[];
};

/** ActiveTunnels of the seed. Throws UnavailableError. */
export async function countTunnels(ctx: TunnelsContext): Promise<Tunnels> {
  return sumTunnels(await ask(ctx, () => ['show stat']));
}

/** Of workers whose last answer is that to `show stat`. */
export function sumTunnels(answers: readonly WorkerAnswers[]): Tunnels {
  const workers = answers.map(({ pid, isOld, answers: all }) => ({
    ...{ pid, old: isOld },
    tunnels: requireCount(parseSessions(all.at(-1) ?? '', tunnelsBackend), pid),
  }));
  return { total: workers.reduce((sum, { tunnels }) => sum + tunnels, 0), workers };
}

const showSessions = ['show sess'];

/** Ends them all; answers how many. The current worker can end those of a server, an old one only single sessions. */
export async function closeTunnels(ctx: TunnelsContext): Promise<number> {
  const closeServer = ['show stat', `shutdown sessions server ${tunnelsServer}`];
  const seen = await ask(ctx, ({ isOld }) => (isOld ? showSessions : closeServer), { isOnce: true });
  const [closed, refused] = [new Set<number>(), new Set<number>()];
  for (const { pid, isOld, answers } of seen) {
    // A reload that has come between the list and the order has made this one old.
    if (!isOld) (answers[1] === '' ? closed : refused).add(pid);
  }
  const again = refused.size === 0 ? [] : await ask(ctx, ({ pid }) => (refused.has(pid) ? showSessions : []));
  const shown = [...seen.filter(({ isOld }) => isOld), ...again.filter(({ pid }) => refused.has(pid))];
  const ended = await closeSessions(ctx, shown);
  const counts = seen
    .filter(({ pid }) => closed.has(pid))
    .map(({ pid, answers: [stats = ''] }) => requireCount(parseSessions(stats, tunnelsBackend), pid));
  return counts.reduce((sum, count) => sum + count, ended);
}

/** Ends those of workers that have been old for so long; answers how many. */
export async function closeOverdueTunnels(ctx: TunnelsContext, boundMs: number): Promise<number> {
  const isOverdue = ({ isOld, oldForMs }: Worker): boolean =>
    isOld && oldForMs !== undefined && oldForMs >= boundMs;
  const seen = await ask(ctx, (worker) => (isOverdue(worker) ? showSessions : []));
  return await closeSessions(ctx, seen.filter(isOverdue));
}

/**
 * Of workers whose answer is that to `show sess`. They are named by their address in memory, which in a worker that takes nothing
 * new is nobody else's.
 */
async function closeSessions(ctx: TunnelsContext, shown: readonly WorkerAnswers[]): Promise<number> {
  const idsOf = new Map(
    shown.map(({ pid, answers: [text = ''] }) => [pid, parseSessionIds(text, tunnelsBackend)] as const),
  );
  if ([...idsOf.values()].every((ids) => ids.length === 0)) return 0;
  const close = ({ pid }: Worker): string[] => (idsOf.get(pid) ?? []).map((id) => `shutdown session ${id}`);
  const ended = await ask(ctx, close, { isOnce: true });
  // One that has ended by itself meanwhile is answered "No such session".
  return ended.flatMap(({ answers }) => answers).filter((answer) => answer === '').length;
}

async function ask(
  { paths, signal, timeoutMs }: TunnelsContext,
  commandsFor: (worker: Worker) => readonly string[],
  { isOnce = false }: { isOnce?: boolean } = {},
): Promise<WorkerAnswers[]> {
  const bound = timeoutMs === undefined ? {} : { timeoutMs };
  const options = { signal, service: proxyService, isOnce, ...bound };
  return await askWorkers(proxyPaths(paths).masterSocket, commandsFor, options);
}

function requireCount(count: number | undefined, pid: number): number {
  if (count !== undefined) return count;
  const why = `its statistics have no backend ${JSON.stringify(tunnelsBackend)}`;
  throw new UnavailableError(`cannot count the tunnels of HAProxy's worker ${pid}: ${why}`);
}
