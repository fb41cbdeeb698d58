// Files that a step asks for: which bundle, and where in the container. A place outside of its own directory is refused.
import { posix } from 'node:path';

export type FileSection = 'in' | 'out' | 'home' | 'tmp';

export type FileEntry = {
  section: FileSection;
  /** The beginning of the bundle's sha256: 7 to 64 hex digits. */
  hash: string;
  /** Absolute, but for `home`: there it is below the home of whoever runs in the container. */
  dst: string;
  readOnly: boolean;
};

const hashPattern = /^[0-9a-f]{7,64}$/;
const unprintable = /[\p{Cc}\p{Surrogate}]/u;

/** Throws a TypeError that says what is wrong; the caller says where. */
export function parseEntry(section: FileSection, text: string): FileEntry {
  const isHomeReadOnly = section === 'home' && text.endsWith(':ro');
  const body = isHomeReadOnly ? text.slice(0, -':ro'.length) : text;
  const colon = body.indexOf(':');
  if (colon < 0) throw new TypeError('has no ":" between hash and destination');
  const hash = body.slice(0, colon);
  if (!hashPattern.test(hash)) throw new TypeError('its hash is not 7 to 64 hex digits');
  const dst = parseDestination(section, body.slice(colon + 1));
  return { section, hash, dst, readOnly: section === 'in' || isHomeReadOnly };
}

function parseDestination(section: FileSection, raw: string): string {
  if (raw.trim() === '') throw new TypeError('has no destination');
  if (unprintable.test(raw)) throw new TypeError('its destination has characters that no path has');
  // Before it is normalised: "/in/../etc" names another place than it seems to.
  if (raw.split('/').includes('..')) throw new TypeError('its destination has ".."');
  const dst = posix.normalize(raw).replace(/\/$/, '');
  if (section === 'home') {
    if (dst.startsWith('/') || raw.startsWith('/'))
      throw new TypeError('its destination is not below the home');
    if (dst === '.') throw new TypeError('its destination is the home itself');
    return dst;
  }
  if (!dst.startsWith(`/${section}/`)) throw new TypeError(`its destination is not below /${section}/`);
  return dst;
}

/** Of one section; throws a TypeError for two at one place. */
export function parseEntries(section: FileSection, texts: readonly string[]): FileEntry[] {
  const places = new Set<string>();
  return texts.map((text, index) => {
    const about = `${section}[${index}]`;
    const entry = withPlace(about, () => parseEntry(section, text));
    if (places.has(entry.dst)) throw new TypeError(`${about}: its destination is taken by another entry`);
    places.add(entry.dst);
    return entry;
  });
}

function withPlace<T>(about: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new TypeError(`${about}: ${(error as Error).message}`);
  }
}
