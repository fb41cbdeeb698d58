// The routes about instances of this machine: where each is reached, its metrics, its health and its logs.
import { paths } from '../agenda/wire.ts';
import { requireSection } from '../config/rules.ts';
import type { Context } from '../context.ts';
import type { Route } from '../server/route.ts';
import { createGate } from './gate.ts';
import { handleLogs } from './logs.ts';
import { handleProbe } from './probe.ts';
import { handleRegister } from './proxy.ts';
import { handleMetrics } from './relay.ts';

/** At once, by what each holds in memory: a scrape 2 MiB, an answer with logs several times 16 MiB. */
const mostScrapes = 32;
const mostLogs = 2;

export function instanceRoutes(ctx: Context): Route[] {
  const { proxyBackendHost: host } = requireSection(ctx.config, 'commands');
  const scrapes = createGate(mostScrapes);
  const logs = createGate(mostLogs);
  return [
    { method: 'PUT', path: paths.proxy, handle: (request) => handleRegister(ctx, request) },
    { method: 'GET', path: paths.metrics, handle: (request) => handleMetrics(request, host, scrapes) },
    { method: 'GET', path: paths.probe, handle: (request) => handleProbe(request, host) },
    { method: 'GET', path: paths.logs, handle: (request) => handleLogs(request, logs) },
  ];
}
