// Who we are for ploy's server: the token, and certificate, key and authority where TLS is on. Read whenever a connection is
// opened, as a renewal puts new ones in place.
import { readFile, stat } from 'node:fs/promises';
import type { SecureContext } from 'node:tls';
import type { JobsConfig } from '../config/config.ts';
import type { BaseContext } from '../context.ts';
import { ConfigError, ReeveError, systemErrorCode } from '../errors.ts';
import { buildSecureContext } from '../http/tls.ts';
import { defaultTokenFile } from '../ploy/names.ts';
import { fileError } from '../state/file-error.ts';

export type CredentialsContext = Pick<BaseContext, 'overrides' | 'log' | 'clock'>;

export type Credentials = {
  token: string;
  secureContext: SecureContext | undefined;
  trusted: string;
  /** Which files they were read from: others lie in their places after a renewal. */
  stamp: string;
};

/** No token or certificate is any longer. */
const maxBytes = 1024 * 1024;

/** A renewal renames the key and then the certificate: between the two they are no pair. */
const pairAttempts = 5;
const pairWaitMs = 50;

export function tokenPath({ overrides }: Pick<BaseContext, 'overrides'>): string {
  return overrides.PLOY_NODE_BEARER_TOKEN_PATH ?? defaultTokenFile;
}

/** Throws ConfigError where one of the files is missing or none of its kind. */
export async function readCredentials(ctx: CredentialsContext, jobs: JobsConfig): Promise<Credentials> {
  // Before they are read: what comes in between is read again.
  const stamp = await readStamp(ctx, jobs);
  const token = await readToken(ctx);
  return { token, ...(await readCertificate(ctx, jobs)), stamp };
}

/** Throws as above. */
export async function readCertificate(
  ctx: CredentialsContext,
  { http: { tls } }: JobsConfig,
): Promise<Pick<Credentials, 'secureContext' | 'trusted'>> {
  if (!tls.enabled) return { secureContext: undefined, trusted: "the system's authorities" };
  const { certPath = '', keyPath = '', caPath = '' } = tls;
  await warnIfOpen(ctx, keyPath, 'key');
  for (let attempt = 1; ; attempt += 1) {
    const [cert, key, ca] = await Promise.all(
      [certPath, keyPath, caPath].map((path) =>
        readSmall(path, 'it comes with a bootstrap token, `reeve doctor` tells how'),
      ),
    );
    try {
      const secureContext = buildSecureContext({
        cert: cert as string,
        key: key as string,
        ca: ca as string,
      });
      return { secureContext, trusted: `that in ${JSON.stringify(caPath)}` };
    } catch (error) {
      const isHalf = error instanceof ReeveError && error.code === 'key-mismatch';
      if (!isHalf || attempt === pairAttempts) throw namePlace(error, certPath);
    }
    await ctx.clock.sleep(pairWaitMs);
  }
}

export async function readStamp(
  ctx: Pick<BaseContext, 'overrides'>,
  { http: { tls } }: JobsConfig,
): Promise<string> {
  const files = tls.enabled ? [tls.certPath, tls.keyPath, tls.caPath] : [];
  const marks = [tokenPath(ctx), ...files].map(async (path = '') => {
    const about = await stat(path, { bigint: true }).catch(() => undefined);
    return about === undefined ? 'none' : `${about.ino}-${about.size}-${about.mtimeNs}`;
  });
  return (await Promise.all(marks)).join(' ');
}

async function readToken(ctx: CredentialsContext): Promise<string> {
  const path = tokenPath(ctx);
  const text = await readSmall(path, 'it comes with the certificate, `reeve doctor` tells how');
  const token = text.trim();
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new ConfigError(`cannot use the token in ${JSON.stringify(path)}: it is not one word`);
  }
  await warnIfOpen(ctx, path, 'token');
  return token;
}

async function readSmall(path: string, fix: string): Promise<string> {
  try {
    const { size } = await stat(path);
    if (size > maxBytes) throw new ConfigError(`cannot read ${JSON.stringify(path)}: it is too large`);
    return await readFile(path, 'utf8');
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw fileError('read', path, error);
    throw new ConfigError(`cannot read ${JSON.stringify(path)}: there is no such file: ${fix}`, {
      cause: error,
      code: 'ENOENT',
    });
  }
}

const warnedOf = new Set<string>();

async function warnIfOpen({ log }: CredentialsContext, path: string, what: string): Promise<void> {
  const about = await stat(path).catch(() => undefined);
  if (about === undefined || (about.mode & 0o077) === 0 || warnedOf.has(path)) return;
  warnedOf.add(path);
  log.warning(`the ${what} can be read by others: chmod 600 ${path}`);
}

function namePlace(error: unknown, certPath: string): unknown {
  if (!(error instanceof ConfigError)) return error;
  const message = error.message.replace(
    'the certificate:',
    `the certificate in ${JSON.stringify(certPath)}:`,
  );
  return new ConfigError(message, { cause: error.cause, code: error.code });
}
