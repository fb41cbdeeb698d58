// A node's certificate for whoever needs it. Nearly always there is nothing to do about it, and then nothing of that is loaded:
// every claim and every heartbeat asks.
import type { JobsConfig } from '../config/config.ts';
import type { Patience } from './exchange.ts';
import type { IdentityContext } from './identity.ts';
import { bootstrapToken, exists, isInPlace } from './presence.ts';

/** As `ensureIdentity`. */
export async function requireIdentity(
  ctx: IdentityContext,
  jobs: JobsConfig,
  patience: Patience = 'patient',
): Promise<void> {
  if (!jobs.http.tls.enabled || (await isInPlace(ctx, jobs))) return;
  const { ensureIdentity } = await import('./identity.ts');
  await ensureIdentity(ctx, jobs, patience);
}

/** As `renewIdentity`. */
export async function renewWhereAsked(ctx: IdentityContext, jobs: JobsConfig): Promise<boolean> {
  if (!jobs.http.tls.enabled || !(await exists(bootstrapToken(ctx)))) return false;
  const { renewIdentity } = await import('./identity.ts');
  return await renewIdentity(ctx, jobs);
}
