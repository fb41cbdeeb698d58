// TLS as we speak it: version 1.3 at least, our certificate where there is one, the authority we trust; and what its errors
// mean for whoever has to mend them. Pure but for the making of a context.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { ConfigError, describeError, systemErrorCode } from '../errors.ts';

export type TlsMaterial = {
  /** PEM. Without a certificate the server is not told who we are. */
  cert?: string;
  key?: string;
  /** PEM. Without it the system's authorities are trusted. */
  ca?: string;
};

/** What messages call the authority that is trusted, and this machine's clock. */
export type TlsAbout = { trusted: string; now: Date };

/** Throws ConfigError with code `key-mismatch` where certificate and key are not a pair, `tls` where they are none at all. */
export function buildSecureContext(material: TlsMaterial): SecureContext {
  const fault = findTlsFault(material);
  if (fault !== undefined) {
    throw new ConfigError(`cannot use the certificate: ${subjects[fault.part]} ${fault.why}`, {
      code: fault.isMismatch ? 'key-mismatch' : 'tls',
    });
  }
  try {
    return createSecureContext({ ...material, minVersion: 'TLSv1.3' });
  } catch (error) {
    throw new ConfigError(`cannot use the certificate: ${describeError(error)}`, {
      cause: error,
      code: 'tls',
    });
  }
}

const subjects = { cert: 'it', key: 'its key', ca: 'its authority' } as const;

/** `why` follows the name of the part. */
export type TlsFault = { part: keyof TlsMaterial; why: string; isMismatch: boolean };

/**
 * Which part cannot be used. OpenSSL's own words for a file that is none of its kind tell nobody anything, and a key of another
 * kind than the certificate's it takes without a word: no handshake succeeds then.
 */
export function findTlsFault({ cert, key, ca }: TlsMaterial): TlsFault | undefined {
  const parts = { cert, key, ca };
  for (const part of ['cert', 'key', 'ca'] as const) {
    const text = parts[part];
    // To Node.js an empty text is the same as none.
    if (text?.trim() === '') return { part, why: 'is empty', isMismatch: false };
    if (text !== undefined && !isParsed(part, text)) {
      return { part, why: 'is damaged, or none', isMismatch: false };
    }
  }
  if (cert === undefined || key === undefined) return undefined;
  if (new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) return undefined;
  return { part: 'key', why: 'is not the one of the certificate', isMismatch: true };
}

function isParsed(part: TlsFault['part'], text: string): boolean {
  try {
    if (part === 'key') createPrivateKey(text);
    else new X509Certificate(text);
    return true;
  } catch {
    return false;
  }
}

/** What to do about a TLS error; undefined where it is none. */
export function explainTlsError(error: unknown, about: TlsAbout): string | undefined {
  const code = systemErrorCode(error) ?? '';
  const text = error instanceof Error ? error.message : '';
  const known = explainTheirs(code, about) ?? explainAlert(`${code} ${text}`, about);
  if (known !== undefined) return known;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `the server's certificate is for another name: ${firstLine(text)}`;
  }
  return /^ERR_(SSL|TLS|OSSL)|^EPROTO$|^CERT_|^CRL_/.test(code)
    ? `TLS: ${firstLine(text)} (${code})`
    : undefined;
}

/** OpenSSL's verdicts on the server's certificate. */
function explainTheirs(code: string, { trusted, now }: TlsAbout): string | undefined {
  const clock = `unless this machine's clock (${now.toISOString()}) is wrong`;
  switch (code) {
    case 'CERT_HAS_EXPIRED':
      return `the server's certificate has expired: it has to be issued again there, ${clock}`;
    case 'CERT_NOT_YET_VALID':
      return `the server's certificate is not valid yet: set the clock there, ${clock}`;
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'CERT_SIGNATURE_FAILURE':
    case 'CERT_UNTRUSTED':
    case 'CERT_REJECTED':
      return `the server's certificate is of another authority than ${trusted}: put the right one there`;
    default:
      return undefined;
  }
}

/** What the server said about our certificate, or about the versions it speaks: alerts by their names in any OpenSSL. */
function explainAlert(text: string, { now }: TlsAbout): string | undefined {
  if (/alert.certificate.expired/i.test(text)) {
    return `the server says that our certificate has expired: put a new bootstrap token in place, or set the clock (${now.toISOString()})`;
  }
  if (
    /alert.(unknown.ca|bad.certificate|certificate.(unknown|revoked)|unsupported.certificate)/i.test(text)
  ) {
    return 'the server refuses our certificate: it has to be of the authority that it trusts';
  }
  if (/alert.certificate.required/i.test(text))
    return 'the server wants a certificate: switch http.tls.enabled on';
  if (/alert.protocol.version|unsupported.protocol|no.protocols.available/i.test(text)) {
    return 'the server does not speak TLS 1.3';
  }
  if (/wrong.version.number|packet.length.too.long/i.test(text)) {
    return 'the server does not speak TLS on this port: is it http there, not https?';
  }
  return undefined;
}

function firstLine(text: string): string {
  return (text.split('\n', 1)[0] ?? '').slice(0, 300);
}
