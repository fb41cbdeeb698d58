// A node's certificate: issued once for a bootstrap token, and again before it runs out. Whoever needs it at the same moment
// waits for the one that exchanges the token.
import crypto from 'node:crypto';
import { readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { JobsConfig } from '../config/config.ts';
import type { BaseContext } from '../context.ts';
import { ConfigError, describeError, systemErrorCode } from '../errors.ts';
import { withLock } from '../lock/with-locks.ts';
import { defineDocument, readDocument, writeDocument } from '../state/document.ts';
import { fileError } from '../state/file-error.ts';
import { requireText } from '../state/shape.ts';
import { exchangeToken, type Patience, RefusedError } from './exchange.ts';
import { dropPending, installIssued, readPending, writePending } from './install.ts';
import { isRenewalDue } from './plan.ts';
import { bootstrapToken, exists, hasCertificate, isInPlace } from './presence.ts';
import { buildCertificateRequest } from './request.ts';

export type IdentityContext = Pick<
  BaseContext,
  'runId' | 'command' | 'paths' | 'overrides' | 'clock' | 'log' | 'signal'
>;

/** Five attempts of ten seconds with their waits: whoever exchanges the token is done by then. */
const lockWaitMs = { patient: 90_000, once: 0 };

/**
 * Makes sure of certificate, key, authority and token. Throws ConfigError where there is no bootstrap token to exchange,
 * UnavailableError where the server does not give them, BusyError where another one asks for them too long.
 */
export async function ensureIdentity(
  ctx: IdentityContext,
  jobs: JobsConfig,
  patience: Patience = 'patient',
): Promise<'present' | 'issued'> {
  if (!jobs.http.tls.enabled || (await isInPlace(ctx, jobs))) return 'present';
  const work = async (): Promise<'present' | 'issued'> => {
    if (await finishPending(ctx, jobs)) return 'issued';
    if (await hasCertificate(jobs)) return 'present';
    await issue(ctx, jobs, patience);
    return 'issued';
  };
  return await withLock(ctx, 'bootstrap', work, { waitMs: lockWaitMs[patience] });
}

/** Tries once. True where a certificate that runs out has been replaced: a new bootstrap token in place is the word for it. */
export async function renewIdentity(ctx: IdentityContext, jobs: JobsConfig): Promise<boolean> {
  const isDue = async (): Promise<boolean> =>
    jobs.http.tls.enabled && (await exists(bootstrapToken(ctx))) && (await runsOut(ctx, jobs));
  if (!(await isDue())) return false;
  const work = async (): Promise<boolean> => {
    if (!(await isDue())) return false;
    await issue(ctx, jobs, 'once');
    return true;
  };
  return await withLock(ctx, 'bootstrap', work, { waitMs: lockWaitMs.once });
}

async function runsOut(ctx: IdentityContext, { http: { tls } }: JobsConfig): Promise<boolean> {
  const text = await readFile(tls.certPath ?? '').catch(() => undefined);
  if (text === undefined) return false;
  const { validFrom, validTo } = new crypto.X509Certificate(text);
  return isRenewalDue({ from: new Date(validFrom), to: new Date(validTo) }, ctx.clock.now());
}

async function finishPending(ctx: IdentityContext, jobs: JobsConfig): Promise<boolean> {
  const issued = await readPending(ctx);
  if (issued === undefined) return false;
  await installIssued(ctx, jobs, issued);
  await dropToken(ctx);
  await dropPending(ctx);
  return true;
}

/** Assumes `bootstrap`. */
async function issue(ctx: IdentityContext, jobs: JobsConfig, patience: Patience): Promise<void> {
  const tokenFile = bootstrapToken(ctx);
  const token = await readBootstrapToken(jobs, tokenFile);
  await requireUnrefused(ctx, tokenFile);
  ctx.log.info('exchanging the bootstrap token for a certificate', { node: jobs.nodeId });
  try {
    const request = await buildCertificateRequest(jobs.nodeId, ctx.signal);
    const issued = await exchangeToken(ctx, jobs, { token, tokenFile, request, patience });
    await writePending(ctx, issued);
    await installIssued(ctx, jobs, issued);
  } catch (error) {
    if (error instanceof RefusedError) await noteRefusal(ctx, tokenFile, describeError(error));
    throw error;
  }
  await dropToken(ctx);
  await dropPending(ctx);
  ctx.log.info('the certificate is in place', { node: jobs.nodeId });
}

async function readBootstrapToken({ nodeId }: JobsConfig, path: string): Promise<string> {
  try {
    const token = (await readFile(path, 'utf8')).trim();
    if (/^[\x21-\x7e]+$/.test(token)) return token;
    throw new ConfigError(`cannot get a certificate for node "${nodeId}": what is in ${path} is no token`);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    if (systemErrorCode(error) !== 'ENOENT') throw fileError('read', path, error);
    throw new ConfigError(
      `cannot get a certificate for node "${nodeId}": there is no bootstrap token in ${path}: issue one (POST /v1/bootstrap/tokens) and put it there`,
      { cause: error, code: 'no-bootstrap-token' },
    );
  }
}

async function dropToken(ctx: IdentityContext): Promise<void> {
  const path = bootstrapToken(ctx);
  await rm(path, { force: true }).catch((error: unknown) => {
    ctx.log.warning(`cannot remove the used token ${path}: ${describeError(error)}`);
  });
}

type Refusal = { token: string; until: string; message: string };

const refusalDocument = defineDocument<Refusal>({
  version: 1,
  parse: (raw) => ({
    token: requireText(raw, 'token'),
    until: requireText(raw, 'until'),
    message: requireText(raw, 'message'),
  }),
});

/** A refused token is left alone for so long; another one is tried at once. */
const refusalMs = 10 * 60_000;

const refusalPath = ({ paths }: IdentityContext): string => join(paths.stateDir, 'backoff', 'bootstrap.json');

async function requireUnrefused(ctx: IdentityContext, tokenFile: string): Promise<void> {
  const now = ctx.clock.now();
  const read = await readDocument(refusalPath(ctx), refusalDocument, { now, log: ctx.log });
  if (read.kind !== 'ok' || read.value.token !== (await identify(tokenFile))) return;
  const leftMs = Date.parse(read.value.until) - now.getTime();
  if (leftMs > 0 && leftMs <= refusalMs) throw new RefusedError(read.value.message);
}

async function noteRefusal(ctx: IdentityContext, tokenFile: string, message: string): Promise<void> {
  const until = new Date(ctx.clock.now().getTime() + refusalMs).toISOString();
  await writeDocument(refusalPath(ctx), refusalDocument, {
    token: await identify(tokenFile),
    until,
    message,
  });
}

/** Which file it was, without a word of what is in it. */
async function identify(path: string): Promise<string> {
  const about = await stat(path).catch(() => undefined);
  // Removed meanwhile: a new one is another in any case.
  if (about === undefined) return 'none';
  const { ino, size, mtimeMs } = about;
  return `${ino}-${size}-${Math.round(mtimeMs)}`;
}
