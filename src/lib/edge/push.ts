// Gives Caddy a document where it has another one, and never otherwise: on Caddy 2.6 each change, whatever it is, ends all
// tunnels. Holds no memory: what Caddy has is asked for.
import { createHash } from 'node:crypto';
import { type CaddyConfigText, fetchConfig, sendConfig } from '../caddy/admin.ts';
import { canonicalJson, compareBytewise } from '../cluster/canonical.ts';
import { describeError, ReeveError, StepError } from '../errors.ts';
import type { Log } from '../report/log.ts';
import { isRecord } from '../state/shape.ts';
import type { CaddyDocument } from './balancer.ts';

export type PushRequest = {
  admin: string;
  document: CaddyDocument;
  /** What `fetchConfig` has read; undefined where it could not be read: then it is replaced whatever it is. */
  live: CaddyConfigText | undefined;
  signal: AbortSignal;
  log: Log;
};

export type PushResult = {
  sent: boolean;
  /**
   * Of the text that Caddy shows when it has this document: a later text with this hash needs no closer look. Absent
   * where Caddy could not be asked afterwards, or somebody has changed it since.
   */
  textHash?: string;
};

/** A rival that wins three times in a row does not stop by itself. */
const maxTries = 3;
const maxErrorLength = 200;

/** Throws StepError where Caddy refuses the document or another writer keeps changing it, UnavailableError without Caddy. */
export async function pushCaddy(request: PushRequest): Promise<PushResult> {
  const { admin, document, signal, log } = request;
  let { live } = request;
  const text = JSON.stringify(document);
  for (let tries = 1; tries <= maxTries; tries += 1) {
    if (live !== undefined && isSameDocument(live.text, document)) {
      return { sent: false, textHash: hashConfigText(live.text) };
    }
    if ((await sendConfig(admin, text, { ifMatch: live?.etag, signal })) === 'done') {
      return { sent: true, ...(await confirm(request)) };
    }
    log.debug('another writer has changed the configuration of Caddy', { tries });
    live = await fetchConfig(admin, { signal });
  }
  throw new StepError(
    `cannot load the configuration of Caddy: another writer changed it ${maxTries} times meanwhile`,
    { code: 'caddy-contended' },
  );
}

export function hashConfigText(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/**
 * Whether they mean the same. The order of keys never counts. The order of a list counts where Caddy goes by it: handlers,
 * policies, and an exact name before or after a wildcard; it does not count among upstreams, origins, and routes of the
 * same kind, no two of which match the same request.
 */
export function isSameDocument(liveText: string, document: CaddyDocument): boolean {
  try {
    return canonicalJson(withoutOrder(JSON.parse(liveText))) === canonicalJson(withoutOrder(document));
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** As launch-pad's agent puts it into status.json: `caddy /load:` and the first 200 characters of what went wrong. */
export function describeCaddyError(error: unknown): string {
  return `caddy /load: ${[...describeError(error)].slice(0, maxErrorLength).join('')}`;
}

/** What was sent is in force; that Caddy cannot be asked about it is no failure. */
async function confirm({ admin, document, signal, log }: PushRequest): Promise<{ textHash?: string }> {
  try {
    const { text } = await fetchConfig(admin, { signal });
    return isSameDocument(text, document) ? { textHash: hashConfigText(text) } : {};
  } catch (error) {
    if (!(error instanceof ReeveError)) throw error;
    log.debug('Caddy cannot be asked about what it was given', { why: error.message });
    return {};
  }
}

const unorderedLists = new Set(['upstreams', 'origins', 'listen', 'host', 'unhealthy_status']);

function withoutOrder(value: unknown, name?: string): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => withoutOrder(item));
    if (name === 'routes') return sortWithinKind(items);
    return name !== undefined && unorderedLists.has(name) ? sortItems(items) : items;
  }
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withoutOrder(member, key)]));
}

/** Neighbours that are all exact names, or all wildcards, are sorted; what stands before what else stays. */
function sortWithinKind(routes: readonly unknown[]): unknown[] {
  const groups: { kind: string; routes: unknown[] }[] = [];
  for (const route of routes) {
    const kind = kindOf(route);
    const last = groups.at(-1);
    if (last?.kind === kind) last.routes.push(route);
    else groups.push({ kind, routes: [route] });
  }
  return groups.flatMap(({ kind, routes: group }) => (kind === 'other' ? group : sortItems(group)));
}

function kindOf(route: unknown): 'exact' | 'wildcard' | 'other' {
  const matchers = isRecord(route) && Array.isArray(route['match']) ? route['match'] : [];
  const [matcher] = matchers as unknown[];
  const hosts = isRecord(matcher) && Array.isArray(matcher['host']) ? (matcher['host'] as unknown[]) : [];
  if (matchers.length !== 1 || hosts.length !== 1) return 'other';
  return String(hosts[0]).startsWith('*') ? 'wildcard' : 'exact';
}

function sortItems(items: readonly unknown[]): unknown[] {
  return items
    .map((item) => ({ item, key: canonicalJson(item) }))
    .sort((left, right) => compareBytewise(left.key, right.key))
    .map(({ item }) => item);
}
