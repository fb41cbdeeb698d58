// The words of the edge: what is served under which name, and from where.
import { domainToUnicode } from 'node:url';
import { isDomain } from '../cluster/rules.ts';

/** A port of a container, as the edge reaches it. */
export type Backend = {
  /** IPv4 or IPv6 address, without brackets. */
  host: string;
  port: number;
};

/** A domain with everything that serves it. `*.example.com` covers one label. */
export type Route = {
  /** In lower case. */
  domain: string;
  /** Sorted by address and port; no two are equal. */
  backends: readonly Backend[];
  /** Path of the active probes; absent: none, or a mere connection. */
  healthPath?: string;
};

/** `HOST:PORT` as dialled: an IPv6 address in brackets. */
export function dialOf({ host, port }: Backend): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** What HAProxy calls the backend of a domain: the domain itself, or `_.example.com` for `*.example.com`. */
export function backendName(domain: string): string {
  return domain.startsWith('*.') ? `_.${domain.slice(2)}` : domain;
}

/** Of a backend's name. */
export function domainOf(backend: string): string {
  return backend.startsWith('_.') ? `*.${backend.slice(2)}` : backend;
}

/** A domain, but for the names that a balancer's own parts and wildcards go by: those can have no certificate anyway. */
export function isRoutable(domain: string): boolean {
  if (!isDomain(domain) || domain === '_none') return false;
  const labels = domain.split('.');
  return labels[0] !== '_' && labels.every(isReadable);
}

/**
 * Caddy reads an encoded label when it starts with a document, and refuses all of it for one that cannot be read. Worse, 2.6
 * goes on listening with what it has refused.
 */
function isReadable(label: string): boolean {
  return !/^xn--/i.test(label) || domainToUnicode(label) !== label.toLowerCase();
}
