// Opens what one tick of an edge needs.

import { findCaddyBinary, knowsCloseDelay, readCaddyVersion } from '../caddy/version.ts';
import type { NodeConfig } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { usesHaproxy } from '../haproxy/binary.ts';
import { openStore } from '../store/open.ts';
import type { Balancer } from './balancer.ts';
import { buildCaddyDocument, type DocumentSettings } from './caddy-document.ts';
import type { EdgeDocument } from './documents.ts';
import { createHaproxyBalancer } from './haproxy-balancer.ts';
import { readMemory } from './memory.ts';
import type { EdgeSession } from './session.ts';

export async function openEdgeSession(
  ctx: Context,
  edge: NodeConfig & { edgeId: string },
  { readOnly }: { readOnly: boolean },
): Promise<EdgeSession> {
  const memory = await readMemory(ctx, { repair: !readOnly });
  const caddy = await findCaddy(ctx, memory.caddy);
  const settings = { caddy: edge.caddy, closeDelay: caddy?.closeDelay === true };
  const balancer = await openBalancer(ctx, edge, settings);
  // Without the signal: a tick that is told to stop still publishes where it stands.
  return { ctx, edge, store: await openStore(edge), memory, balancer, caddy };
}

/** Its version is asked for once a binary. */
async function findCaddy(ctx: Context, known: EdgeDocument['caddy']): Promise<EdgeDocument['caddy']> {
  const binary = await findCaddyBinary();
  if (binary === undefined) return null;
  if (known?.stamp === binary.stamp) return known;
  const version = await readCaddyVersion(binary.path, { signal: ctx.signal });
  return { stamp: binary.stamp, closeDelay: knowsCloseDelay(version) };
}

async function openBalancer(
  ctx: Context,
  edge: NodeConfig,
  settings: Omit<DocumentSettings, 'via'>,
): Promise<Balancer> {
  const { balancer, haproxy } = edge;
  if (!(await usesHaproxy(balancer))) return createCaddyBalancer(settings);
  return {
    ...createHaproxyBalancer(ctx, haproxy),
    buildCaddyDocument: (routes) => buildCaddyDocument(routes, { ...settings, via: haproxy.address }),
  };
}

/** Caddy by itself: what it balances over stands in its document, and there is nothing beside it. */
function createCaddyBalancer(settings: Omit<DocumentSettings, 'via'>): Balancer {
  return {
    name: 'caddy',
    // Nothing but Caddy's document, which is compared by itself.
    fetchStamp: async () => 'caddy',
    requireReady: async () => {},
    readHealthPaths: async () => new Map(),
    buildCaddyDocument: (routes) => buildCaddyDocument(routes, settings),
    compare: async () => ({ changes: [] }),
    apply: async () => [],
  };
}
