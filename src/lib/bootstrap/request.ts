// A new key and the request to have it certified, by the openssl program: the key comes over a pipe and is on no disk.
import { InternalError } from '../errors.ts';
import { runProgram } from '../exec/run.ts';

export type CertificateRequest = { key: string; csr: string };

const timeoutMs = 30_000;

/** ECDSA over P-256, as ploy's server expects it of a node. Throws CommandError. */
export async function buildCertificateRequest(
  nodeId: string,
  signal: AbortSignal,
): Promise<CertificateRequest> {
  const { stdout } = await runProgram(
    [
      'openssl',
      ...['req', '-new', '-sha256', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'],
      ...['-nodes', '-keyout', '-', '-subj', `/O=Ploy/CN=node:${nodeId}`],
      ...['-addext', `subjectAltName=DNS:node-${nodeId}.ploy`],
    ],
    { timeoutMs, signal },
  );
  return { key: findPem(stdout, 'PRIVATE KEY'), csr: findPem(stdout, 'CERTIFICATE REQUEST') };
}

function findPem(text: string, kind: string): string {
  const found = new RegExp(`-----BEGIN ${kind}-----[^-]+-----END ${kind}-----`).exec(text)?.[0];
  if (found === undefined) throw new InternalError(`openssl has made no ${kind.toLowerCase()}`);
  return `${found}\n`;
}
