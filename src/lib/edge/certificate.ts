// Which names can have a certificate at all, by who signs. Pure.
import type { CaddyConfig } from '../config/config.ts';

/** Why there will never be one; undefined where there can. */
export function whyNoCertificate(
  domain: string,
  { issuer }: Pick<CaddyConfig, 'issuer'>,
): string | undefined {
  if (issuer === 'internal' || !domain.startsWith('*.') || isLocalName(domain)) return undefined;
  return 'a wildcard needs a DNS challenge, which Caddy cannot do, or cluster.caddy.issuer "internal"';
}

/** Caddy signs these itself, whoever else is the issuer. */
function isLocalName(domain: string): boolean {
  return /\.(localhost|local|home\.arpa)$/.test(domain);
}
