// Addresses to listen on, as Go programs write them: `127.0.0.1:7100`, `:8444`, `[::1]:80`.
import { BlockList, isIP } from 'node:net';

export type ListenAddress = { host: string; port: number };

/** Undefined if it is no address. The host is empty where all interfaces are meant. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]\s]*)):(\d{1,5})$/.exec(text);
  if (match === null) return undefined;
  const port = Number(match[3]);
  return port > 65535 ? undefined : { host: match[1] ?? match[2] ?? '', port };
}

/** As a socket of systemd can have it, which knows neither names nor a port that is chosen later. Undefined where it cannot. */
export function parseSocketAddress(text: string): ListenAddress | undefined {
  const parsed = parseListenAddress(text);
  if (parsed === undefined || parsed.port === 0) return undefined;
  const host = parsed.host === 'localhost' ? '127.0.0.1' : parsed.host;
  return host === '' || isIP(host) !== 0 ? { host, port: parsed.port } : undefined;
}

/** Reachable from networks that are not private, as far as the address tells. */
export function isPublicBind(host: string): boolean {
  if (host === '') return true;
  const family = isIP(host);
  if (family === 0) return false;
  return !privateRanges.check(host, family === 6 ? 'ipv6' : 'ipv4');
}

const privateRanges = new BlockList();
for (const [network, prefix] of [
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['169.254.0.0', 16],
  // Shared address space, which overlay networks of hosts use.
  ['100.64.0.0', 10],
] as const) {
  privateRanges.addSubnet(network, prefix, 'ipv4');
}
privateRanges.addAddress('::1', 'ipv6');
privateRanges.addSubnet('fc00::', 7, 'ipv6');
privateRanges.addSubnet('fe80::', 10, 'ipv6');

/** An address of this machine that no other can reach. */
export function isLoopback(host: string): boolean {
  const family = isIP(host);
  return family !== 0 && loopback.check(host, family === 6 ? 'ipv6' : 'ipv4');
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');
