// Connections that come to nothing, in a sentence of ours where the system's own leaves one guessing. Pure.
import { systemErrorCode } from '../errors.ts';

/** Undefined for what says enough by itself. */
export function describeConnection(error: unknown, origin = 'the service'): string | undefined {
  const code = systemErrorCode(error);
  if (!(error instanceof Error) || code === undefined) return undefined;
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) {
    return `${origin} and this machine find no TLS in common (${code}): does it speak http://?`;
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return describeOtherName(error, origin);
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    const what = code === 'CERT_HAS_EXPIRED' ? 'has expired' : 'is not valid yet';
    return `the certificate of ${origin} ${what}, or the clock of this machine is wrong`;
  }
  if (untrusted.test(code)) {
    return `the certificate of ${origin} is not trusted (${code}): NODE_EXTRA_CA_CERTS names the file of its authority`;
  }
  return origin.startsWith('http:') ? describePlain(error, code, origin) : undefined;
}

/** What a service of TLS makes of a request without. */
function describePlain(error: Error, code: string, origin: string): string | undefined {
  if (code.startsWith('HPE_'))
    return `${origin} answers with what is no HTTP (${code}): does it speak https://?`;
  // Ended by the other side before there was an answer. A connection that broke names the call that failed.
  const isHungUp = code === 'ECONNRESET' && !('syscall' in error);
  return isHungUp ? `${origin} hangs up without an answer (${code}): does it speak https://?` : undefined;
}

/** OpenSSL's, as Node names them. */
const untrusted =
  /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_.*(CERT|SIGNATURE).*|CERT_(UNTRUSTED|REJECTED|REVOKED|SIGNATURE_FAILURE|CHAIN_TOO_LONG)|INVALID_(CA|PURPOSE)|PATH_LENGTH_EXCEEDED)$/;

function describeOtherName(error: Error, origin: string): string {
  const { cert } = error as { cert?: { subjectaltname?: string } };
  const names = (cert?.subjectaltname ?? '').replaceAll(/\b(DNS|IP Address):/g, '');
  return `the certificate of ${origin} is for ${names === '' ? 'no such name' : `${names} alone`}`;
}
