// `reeve api commands`: the node's management API, as agenda-node has it. Whoever has its token runs commands here, so that it
// listens on private addresses only, or with TLS.
import type { AddressInfo } from 'node:net';
import type { ErrorAnswer } from '../agenda/wire.ts';
import { isPublicBind } from '../config/listen.ts';
import { requireSection } from '../config/rules.ts';
import type { BaseContext, Context } from '../context.ts';
import { ConfigError, ReeveError } from '../errors.ts';
import type { Outcome } from '../outcome.ts';
import { findListenTarget, type ListenTarget } from '../server/listen.ts';
import { refuseCallers } from '../server/refuse.ts';
import type { Route } from '../server/route.ts';
import { serve } from '../server/serve.ts';
import { createTurns } from '../turns.ts';
import { createAuthorize } from './auth.ts';
import { healthRoutes } from './health.ts';
import { instanceRoutes } from './instances.ts';
import { jobsRoutes } from './jobs.ts';
import { keepSwept } from './sweep.ts';

export type ApiOptions = {
  /** `HOST:PORT`; undefined: the socket that systemd hands over. */
  listen: string | undefined;
  /** Without a connection; undefined: a minute on systemd's socket, and for ever on one of our own. */
  idleMs: number | undefined;
  loadContext(): Promise<Context>;
};

const times = {
  readMs: 30_000,
  /** A probe may take half a minute, and so may a job that takes the place of one that was deleted. */
  writeMs: 60_000,
  /** Longer than clients keep connections, so that they close them and no request meets the end of one. */
  keepMs: 120_000,
};
const publicAddress = 'public-address';
const defaultIdleMs = 60_000;
/** No command that a kernel would take is as long. */
const bodyBytes = 4 * 1024 * 1024;

export async function runCommandsApi(base: BaseContext, options: ApiOptions): Promise<Outcome> {
  const target = findListenTarget(options.listen);
  try {
    return await serveCommands(await options.loadContext(), target, options);
  } catch (error) {
    // Callers on systemd's socket would start us again at once. Of a public one they have been told already.
    const isTold = error instanceof ReeveError && error.code === publicAddress;
    if (target.handed && error instanceof ReeveError && !isTold) await refuseCallers(base, target);
    throw error;
  }
}

async function serveCommands(ctx: Context, target: ListenTarget, { idleMs }: ApiOptions): Promise<Outcome> {
  const { token, tls } = requireSection(ctx.config, 'commands');
  // An address is known before anybody listens on it; a name, or a socket that was handed over, only then.
  if (tls === undefined && !target.handed) requirePrivate({ address: target.host ?? '' });
  const turns = createTurns();
  const ended = new AbortController();
  const sweeping = keepSwept(ctx, turns, AbortSignal.any([ctx.signal, ended.signal]));
  try {
    const served = await serve(ctx, {
      target,
      certificates: tls,
      times: { ...times, idleMs: idleMs ?? (target.handed ? defaultIdleMs : undefined) },
      bodyBytes,
      routes: commandsRoutes(ctx, turns),
      authorize: createAuthorize(token),
      renderError: (message): ErrorAnswer => ({ error: message }),
      checkAddress: tls === undefined ? requirePrivate : undefined,
    });
    return {
      outcome: served.requests > 0 ? 'done' : 'nothing-to-do',
      text: [`${served.requests} requests on ${served.connections} connections`],
      data: { ...served },
    };
  } finally {
    ended.abort();
    await sweeping;
  }
}

/** All that is served here: each file of this room brings its own. */
function commandsRoutes(ctx: Context, turns: ReturnType<typeof createTurns>): Route[] {
  return [...healthRoutes(), ...jobsRoutes(ctx, turns), ...instanceRoutes(ctx)];
}

/** Whatever the configuration says: a socket may have been handed over by a unit that says something else. */
function requirePrivate({ address }: Pick<AddressInfo, 'address'>): void {
  if (!isPublicBind(address)) return;
  throw new ConfigError(
    `cannot serve commands on ${address === '' ? 'all addresses' : address}: that is not private, and there is no TLS (commands.tls)`,
    { code: publicAddress },
  );
}
