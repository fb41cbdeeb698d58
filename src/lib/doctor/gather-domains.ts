// Asks the edge's Caddy for the certificates of the domains that it serves, as a browser would.
import { connect } from 'node:tls';
import { mapBounded } from '../bounded.ts';
import type { CaddyConfig } from '../config/config.ts';
import { whyNoCertificate } from '../edge/certificate.ts';
import { systemErrorCode } from '../errors.ts';
import type { ServedDomain } from './judge-domains.ts';

/** Each is a handshake; the first ones tell whether certificates can be had at all. */
const mostAsked = 50;
const timeoutMs = 2_000;

/** Those that can never have one are told without being asked for. */
export async function gatherDomains(
  domains: readonly string[],
  caddy: Pick<CaddyConfig, 'httpsPort' | 'issuer'>,
): Promise<ServedDomain[]> {
  const known = domains.map((domain) => ({ domain, never: whyNoCertificate(domain, caddy) }));
  const never = known.flatMap(({ domain, never: reason }): ServedDomain[] =>
    reason === undefined ? [] : [{ domain, kind: 'never', reason }],
  );
  const able = known.flatMap(({ domain, never: reason }) => (reason === undefined ? [domain] : []));
  const asked = await mapBounded(able.slice(0, mostAsked), mostAsked, (domain) =>
    askForCertificate(domain, caddy.httpsPort),
  );
  return [...never, ...asked];
}

/** Whether a browser would trust it is not asked: an issuer of one's own is as good. */
function askForCertificate(domain: string, port: number): Promise<ServedDomain> {
  const servername = domain.replace(/^\*\./, 'reeve-doctor.');
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, servername, rejectUnauthorized: false });
    const settle = (result: ServedDomain): void => {
      socket.destroy();
      resolve(result);
    };
    socket.setTimeout(timeoutMs, () =>
      settle({ domain, kind: 'none', cause: `no answer within ${timeoutMs / 1000} s` }),
    );
    socket.on('error', (error) => settle({ domain, kind: 'none', cause: describeRefusal(error) }));
    socket.on('secureConnect', () => {
      const { valid_from: from, valid_to: to } = socket.getPeerCertificate();
      settle({ domain, kind: 'valid', from: new Date(from), to: new Date(to) });
    });
  });
}

function describeRefusal(error: Error): string {
  const code = systemErrorCode(error) ?? '';
  if (code === 'ECONNREFUSED') return 'nothing listens there';
  return code.includes('ALERT') ? 'Caddy has none' : error.message;
}
