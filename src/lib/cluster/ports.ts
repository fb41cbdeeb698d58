// The host port of each web replica: by hash, so that a node that has lost its state finds the same ports again.
import { StepError } from '../errors.ts';

/** First port, and the first one beyond the range. */
export const firstPort = 20_000;
export const endPort = 30_000;

const portCount = endPort - firstPort;

export function portKey(replica: { project: string; service: string; index: number }): string {
  return `${replica.project}/${replica.service}#${replica.index}`;
}

/** The port a key prefers: h*31 + code point over its characters as uint32, in the range. */
export function preferredPort(key: string): number {
  let hash = 0;
  for (const character of key) {
    hash = (Math.imul(hash, 31) + (character.codePointAt(0) as number)) >>> 0;
  }
  return firstPort + (hash % portCount);
}

export type PortRequest = {
  key: string;
  /** Ports by key that are ours, of stopped replicas too: a stopped service must find its port again. */
  reserved: Readonly<Record<string, number>>;
  /** Ports that something else on this machine holds. */
  taken: ReadonlySet<number>;
};

/** The key's reserved port if it may keep it, else the next free one from its preferred port on, wrapping at the end. */
export function allocatePort({ key, reserved, taken }: PortRequest): number {
  const own = Object.hasOwn(reserved, key) ? reserved[key] : undefined;
  if (own !== undefined && isInRange(own) && !taken.has(own)) return own;
  const others = new Set(Object.entries(reserved).flatMap(([other, port]) => (other === key ? [] : [port])));
  const start = preferredPort(key) - firstPort;
  for (let step = 0; step < portCount; step++) {
    const port = firstPort + ((start + step) % portCount);
    if (!others.has(port) && !taken.has(port)) return port;
  }
  throw new StepError(
    `cannot allocate a host port for "${key}": all ports from ${firstPort} to ${endPort - 1} are taken`,
  );
}

function isInRange(port: number): boolean {
  return Number.isInteger(port) && port >= firstPort && port < endPort;
}
