// The server's certificate, its key, and the authority of those who may call. Read anew when the files have changed, at the
// next connection, so that a renewal needs no restart.
import { readFileSync, statSync } from 'node:fs';
import type { SecureContextOptions, Server as TlsServer } from 'node:tls';
import type { BaseContext } from '../context.ts';
import { ConfigError, describeError } from '../errors.ts';
import { buildSecureContext, findTlsFault } from '../http/tls.ts';
import { fileError } from '../state/file-error.ts';

/** Without `caPath` callers show no certificate. */
export type CertificateFiles = { certPath: string; keyPath: string; caPath?: string };

/** Throws ConfigError that names the file: it is missing, none of its kind, or not the other's. */
export function readCertificates(files: CertificateFiles): SecureContextOptions {
  const { certPath, keyPath, caPath } = files;
  const [cert, key] = [certPath, keyPath].map(readText) as [string, string];
  const material = { cert, key, ...(caPath === undefined ? {} : { ca: readText(caPath) }) };
  const fault = findTlsFault(material);
  if (fault === undefined) {
    buildSecureContext(material);
    return material;
  }
  const path = { cert: certPath, key: keyPath, ca: caPath ?? '' }[fault.part];
  const kind = { cert: 'certificate', key: 'key', ca: 'authority' }[fault.part];
  const why = fault.isMismatch ? `it is not the key of ${JSON.stringify(certPath)}` : `it ${fault.why}`;
  throw new ConfigError(`cannot use the ${kind} in ${JSON.stringify(path)}: ${why}`);
}

/** What is to be called before each handshake. */
export function createRefresh(
  server: TlsServer,
  files: CertificateFiles,
  { log }: Pick<BaseContext, 'log'>,
): () => void {
  let inForce = stampsOf(files);
  let refused = '';
  return () => {
    const stamps = stampsOf(files);
    if (stamps === inForce || stamps === refused) return;
    try {
      server.setSecureContext({ ...readCertificates(files), ...tlsVersions });
      inForce = stamps;
      log.info('took a new certificate into force');
    } catch (error) {
      // Half of a renewal: the other half changes the stamps once more.
      refused = stamps;
      log.warning(`the certificate stays as it is: ${describeError(error)}`);
    }
  };
}

/** OpenSSL's SSL_OP_NO_TICKET: a caller's certificate is verified each time, also one that has expired meanwhile. */
const noTickets = 0x4000;
export const tlsVersions = { minVersion: 'TLSv1.3', secureOptions: noTickets } as const;

function stampsOf({ certPath, keyPath, caPath }: CertificateFiles): string {
  const paths = [certPath, keyPath, ...(caPath === undefined ? [] : [caPath])];
  return paths.map(stampOf).join(' ');
}

function stampOf(path: string): string {
  const about = statSync(path, { throwIfNoEntry: false });
  return about === undefined ? 'missing' : `${about.ino}:${about.size}:${about.mtimeMs}`;
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw fileError('read', path, error);
  }
}
