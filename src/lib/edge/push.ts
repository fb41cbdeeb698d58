// Gives Caddy a document where it has another one, and never otherwise: on Caddy 2.6 each change, whatever it is, ends all
// tunnels. Holds no memory: what Caddy has is asked for.
import { createHash } from 'node:crypto';
import { type CaddyConfigText, fetchConfig, sendConfig } from '../caddy/admin.ts';
import { describeError, ReeveError, StepError } from '../errors.ts';
import type { Log } from '../report/log.ts';
import type { CaddyDocument } from './balancer.ts';
import { isSameDocument } from './same-document.ts';

export type PushRequest = {
  admin: string;
  document: CaddyDocument;
  /** What `fetchConfig` has read; undefined where it could not be read: then it is replaced whatever it is. */
  live: CaddyConfigText | undefined;
  /** Once, and only where there is something to send. What it throws is thrown. */
  beforeSend?: () => Promise<void>;
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
    if (tries === 1) await request.beforeSend?.();
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
