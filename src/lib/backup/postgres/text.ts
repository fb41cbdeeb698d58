// What PostgreSQL's dumps say of themselves, what its databases can be called, and what the official image is set up by. Pure but
// for the password that a new server gets.
import { randomBytes } from 'node:crypto';
import { restorePrefix } from './sql.ts';

/** The encoding that the beginning of a dump's text names. */
export function parseEncoding(beginning: string): string | undefined {
  return /^SET client_encoding = '(\w+)';$/m.exec(beginning)?.[1];
}

/**
 * Whether a text that ends so is a whole dump: launch-pad's are compressed by another program, so that a stream that is whole may
 * be half a dump. Newer dumps have lines behind the one that says so.
 */
export function isDumpEnd(text: string): boolean {
  return /^-- PostgreSQL database dump complete$/m.test(text);
}

/** A longer one would be cut without a word. */
const maxNameBytes = 63;

export function refuseName(name: string): string | undefined {
  if (name === '') return 'a database has a name';
  if (name.includes('\0')) return 'a name has no NUL character';
  if (Buffer.byteLength(name) > maxNameBytes) return `a name has at most ${maxNameBytes} bytes`;
  if (/^template[01]$/.test(name)) return 'it is a template';
  if (name.startsWith(restorePrefix)) return 'such names are for restores under way';
  return undefined;
}

/** Of the service's own variables those that say how a server is set up. */
const setupNames = ['POSTGRES_USER', 'POSTGRES_INITDB_ARGS', 'LANG', 'LC_ALL', 'TZ'];

/** The password is nobody's. */
export function setUpLike(env: readonly string[]): Readonly<Record<string, string>> {
  const variables = env.map((entry): [string, string] => [
    entry.slice(0, entry.indexOf('=')),
    entry.slice(entry.indexOf('=') + 1),
  ]);
  const setup = variables.filter(([name]) => setupNames.includes(name));
  return { ...Object.fromEntries(setup), POSTGRES_PASSWORD: randomBytes(24).toString('hex') };
}
