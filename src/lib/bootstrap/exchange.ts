// The exchange of a bootstrap token for a certificate, with its attempts, and the check of what came.
import crypto from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import type { SecureContext } from 'node:tls';
import type { JobsConfig } from '../config/config.ts';
import type { BaseContext } from '../context.ts';
import { ConfigError, describeError, systemErrorCode, UnavailableError } from '../errors.ts';
import { readErrorText } from '../http/answer.ts';
import { type HttpClient, openHttp } from '../http/client.ts';
import { bootstrapBackoff, planBackoffMs } from '../http/retry.ts';
import { buildSecureContext } from '../http/tls.ts';
import { endpoints } from '../ploy/endpoints.ts';
import { nodeHeader } from '../ploy/names.ts';
import { fileError } from '../state/file-error.ts';
import { isRecord } from '../state/shape.ts';
import type { CertificateRequest } from './request.ts';

/** What the server has issued, with the key that it is for. */
export type Issued = { key: string; certificate: string; caBundle: string; bearerToken: string };

type ExchangeContext = Pick<BaseContext, 'clock' | 'log' | 'signal'>;

const patientAttempts = 5;
const timeoutMs = 10_000;

/** The server has answered, and will answer the same to this token again. */
export class RefusedError extends UnavailableError {
  constructor(message: string) {
    super(message, { code: 'bootstrap-refused' });
  }
}

/** What it has issued cannot be used, and the token is used up. */
class UnusableError extends RefusedError {}

/** `patient`: five attempts with their waits; `once`: for whoever has something else to do. */
export type Patience = 'patient' | 'once';

type Exchange = { token: string; tokenFile: string; request: CertificateRequest };

/** Throws RefusedError where the last answer was a refusal or cannot be used, UnavailableError where there was none. */
export async function exchangeToken(
  ctx: ExchangeContext,
  jobs: JobsConfig,
  { patience, ...exchange }: Exchange & { patience: Patience },
): Promise<Issued> {
  const attempts = patience === 'patient' ? patientAttempts : 1;
  const http = await openServer(jobs, ctx.signal);
  try {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await exchangeOnce(http, jobs, exchange);
      } catch (error) {
        const isLast = attempt === attempts || ctx.signal.aborted || error instanceof UnusableError;
        if (isLast || !(error instanceof UnavailableError)) throw error;
        ctx.log.warning(`${describeError(error)}; it is tried again`, { attempt });
      }
      await ctx.clock.sleep(planBackoffMs(bootstrapBackoff, attempt, Math.random()), ctx.signal);
    }
  } finally {
    http.close();
  }
}

async function openServer(jobs: JobsConfig, signal: AbortSignal): Promise<HttpClient> {
  return openHttp({ baseUrl: jobs.serverUrl, signal, ...(await readBootstrapTrust(jobs)) });
}

/** Whom to trust before there is a certificate of ours: what is named for it, the cluster's authority if known, or the system's. */
export async function readBootstrapTrust({
  http: { tls },
}: JobsConfig): Promise<{ trusted?: string; secureContext?: SecureContext }> {
  const hasCa = tls.caPath !== undefined && (await stat(tls.caPath).catch(() => undefined)) !== undefined;
  const path = tls.bootstrapCaPath ?? (hasCa ? tls.caPath : undefined);
  if (path === undefined) return {};
  const ca = await readFile(path, 'utf8').catch((error: unknown) => {
    if (systemErrorCode(error) !== 'ENOENT') throw fileError('read', path, error);
    throw new ConfigError(
      `cannot read ${JSON.stringify(path)}: there is no such file: put the authority of the server's certificate there, or correct jobs.http.tls.bootstrap_ca_path`,
      { cause: error, code: 'ENOENT' },
    );
  });
  if (!ca.includes('-----BEGIN CERTIFICATE-----')) {
    throw new ConfigError(`cannot use ${JSON.stringify(path)}: there is no certificate in it`);
  }
  const trusted = `that in ${JSON.stringify(path)}`;
  return { trusted, secureContext: buildSecureContext({ ca }) };
}

async function exchangeOnce(
  http: HttpClient,
  { nodeId, serverUrl }: JobsConfig,
  { token, tokenFile, request }: Exchange,
): Promise<Issued> {
  const { status, body } = await http.send({
    method: 'POST',
    path: endpoints.bootstrap,
    headers: { authorization: `Bearer ${token}`, [nodeHeader]: nodeId },
    body: { csr: request.csr },
    timeoutMs,
  });
  if (status === 200) return parseIssued(body, request.key);
  const words = readErrorText(body, token);
  const message = `cannot get a certificate for node "${nodeId}" from ${serverUrl}: ${explainStatus(status, words, { nodeId, tokenFile })}`;
  throw status >= 500 ? new UnavailableError(message) : new RefusedError(message);
}

function explainStatus(status: number, words: string, about: { nodeId: string; tokenFile: string }): string {
  const again = `issue a new token (POST /v1/bootstrap/tokens) and put it into ${about.tokenFile}`;
  const said = words === '' ? `${status}` : `${status}, ${words}`;
  if (status === 401) return `the bootstrap token is refused (${said}): ${again}`;
  if (status === 409) {
    return `the server has a node of this id already (${said}): remove it there or give this one another node_id, then ${again}`;
  }
  return `the server answered ${said}`;
}

/** Throws UnusableError where it is not what it should be: nothing has been written then. */
function parseIssued(body: Buffer, key: string): Issued {
  try {
    const raw: unknown = JSON.parse(body.toString('utf8'));
    const text = (name: string): string => {
      const value = isRecord(raw) ? raw[name] : undefined;
      if (typeof value !== 'string' || value === '') throw new TypeError(`it has no ${name}`);
      return value;
    };
    const issued = {
      key,
      certificate: text('certificate'),
      caBundle: text('ca_bundle'),
      bearerToken: text('bearer_token'),
    };
    const { fingerprint } = raw as { fingerprint?: unknown };
    requireFitting(issued, typeof fingerprint === 'string' ? fingerprint : '');
    return issued;
  } catch (error) {
    throw new UnusableError(
      `cannot use the certificate that the server has issued: ${describeError(error)}: the bootstrap token is used up with it, another one is needed`,
    );
  }
}

function requireFitting({ key, certificate, caBundle }: Issued, fingerprint: string): void {
  const found = new crypto.X509Certificate(certificate).fingerprint256.replaceAll(':', '').toLowerCase();
  if (fingerprint !== '' && fingerprint.replaceAll(':', '').toLowerCase() !== found) {
    throw new TypeError('its fingerprint is another one');
  }
  buildSecureContext({ cert: certificate, key, ca: caBundle });
}
