// The proxy's maps as values: instances with their ports, the drain, the address of the instances. Pure.
import { InputError } from '../errors.ts';
import { isPort, toPort } from '../port.ts';

/** Ports by instance. */
export type Instances = ReadonlyMap<string, number>;

/** One segment of a path, the same encoded and not; it stands in a map file and in commands, so without blanks and quotes. */
const instancePattern = /^[A-Za-z0-9_][A-Za-z0-9_.~-]{0,127}$/;

export function isInstance(text: string): boolean {
  return instancePattern.test(text);
}

/** Throws InputError for what cannot be an instance of `/i/<instance>/`. */
export function parseInstance(text: string): string {
  if (isInstance(text)) return text;
  throw new InputError(
    `cannot use instance ${JSON.stringify(text.slice(0, 200))}: it must be 1 to 128 letters, digits, "_", ".", "~" and "-", and begin with a letter, a digit or "_"`,
  );
}

/** Throws InputError. */
export function parsePort(value: unknown): number {
  const port = typeof value === 'string' ? toPort(value) : value;
  if (isPort(port)) return port;
  throw new InputError(`cannot use port ${JSON.stringify(value)}: it must be 1 to 65535`);
}

/** A map file. Lines that are no instance with a port are left out, and a sync takes them out of HAProxy. */
export function parseInstancesMap(text: string): Instances {
  const instances = new Map<string, number>();
  for (const line of text.split('\n')) {
    const [name = '', value = ''] = line.trim().split(/\s+/);
    const port = toPort(value);
    // Of two lines of one name the first counts, as for HAProxy.
    if (!isInstance(name) || instances.has(name) || port === undefined) continue;
    instances.set(name, port);
  }
  return instances;
}

/** Sorted: the same instances are the same text. */
export function renderInstancesMap(instances: Instances): string {
  const lines = [...instances].sort(([left], [right]) => (left < right ? -1 : 1));
  return lines.map(([name, port]) => `${name} ${port}\n`).join('');
}

/** The keys by which HAProxy looks the other two maps up. */
export const drainKey = 'drain';
export const hostKey = 'backend_host';

/** The value of one key of a map file with a single line. */
export function parseSingleMap(text: string, key: string): string | undefined {
  const [name, value] = text.trim().split(/\s+/);
  return name === key ? value : undefined;
}
