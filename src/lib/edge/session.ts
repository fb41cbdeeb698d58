// One tick of an edge: what it holds open.
import type { NodeConfig } from '../config/rules.ts';
import type { Context } from '../context.ts';
import type { Store } from '../store/store.ts';
import type { Balancer } from './balancer.ts';
import type { EdgeDocument } from './documents.ts';

export type EdgeSession = {
  ctx: Context;
  edge: NodeConfig & { edgeId: string };
  store: Store;
  memory: EdgeDocument;
  balancer: Balancer;
  /** What the installed Caddy can do; remembered for the next tick. */
  caddy: EdgeDocument['caddy'];
};
