// `reeve api jobs`: the node's own API for jobs, as ployd-node has it. It starts and stops jobs for whoever is at the node;
// claims need none of it. A job belongs to its records and its unit, never to the request that began it.
import { requireSection } from '../config/rules.ts';
import type { BaseContext, Context } from '../context.ts';
import { ConfigError, ReeveError } from '../errors.ts';
import type { Outcome } from '../outcome.ts';
import { limits } from '../ploy/limits.ts';
import type { CertificateFiles } from '../server/certificates.ts';
import { findListenTarget, type ListenTarget } from '../server/listen.ts';
import { refuseCallers } from '../server/refuse.ts';
import type { Route } from '../server/route.ts';
import { serve } from '../server/serve.ts';
import { createTurns } from '../turns.ts';
import { handleStart } from './start.ts';
import { handleStop } from './stop.ts';

export type ApiOptions = {
  /** `HOST:PORT`; undefined: the socket that systemd hands over. */
  listen: string | undefined;
  /** Without a connection; undefined: a minute on systemd's socket, and for ever on one of our own. */
  idleMs: number | undefined;
  loadContext(): Promise<Context>;
};

const defaultIdleMs = 60_000;

export async function runJobsApi(base: BaseContext, options: ApiOptions): Promise<Outcome> {
  const target = findListenTarget(options.listen);
  try {
    return await serveJobs(await options.loadContext(), target, options);
  } catch (error) {
    // Callers on systemd's socket would start us again at once.
    if (target.handed && error instanceof ReeveError) await refuseCallers(base, target);
    throw error;
  }
}

async function serveJobs(ctx: Context, target: ListenTarget, { idleMs }: ApiOptions): Promise<Outcome> {
  const { http } = requireSection(ctx.config, 'jobs');
  const served = await serve(ctx, {
    target,
    certificates: findCertificates(http.tls),
    times: {
      readMs: http.readTimeoutMs,
      writeMs: http.writeTimeoutMs,
      keepMs: http.idleTimeoutMs,
      idleMs: idleMs ?? (target.handed ? defaultIdleMs : undefined),
    },
    bodyBytes: limits.startBodyBytes,
    routes: jobsRoutes(ctx),
  });
  return {
    outcome: served.requests > 0 ? 'done' : 'nothing-to-do',
    text: [`${served.requests} requests on ${served.connections} connections`],
    data: { ...served },
  };
}

function jobsRoutes(ctx: Context): Route[] {
  const turns = createTurns();
  return [
    { method: 'POST', path: '/v1/run/start', handle: (request) => handleStart(ctx, request, turns) },
    { method: 'POST', path: '/v1/run/stop', handle: (request) => handleStop(ctx, request) },
    {
      method: 'GET',
      path: '/health',
      handle: () => Promise.resolve({ status: 200, json: { status: 'ok' } }),
    },
  ];
}

type Tls = NonNullable<Context['config']['jobs']>['http']['tls'];

/** The configuration has made sure of all three. */
function findCertificates({ enabled, certPath, keyPath, caPath }: Tls): CertificateFiles | undefined {
  if (!enabled) return undefined;
  if (certPath === undefined || keyPath === undefined || caPath === undefined) {
    throw new ConfigError('cannot serve: jobs.http.tls is enabled without cert_path, key_path and ca_path');
  }
  return { certPath, keyPath, caPath };
}
