// Text as unit files hold it. Pure.
import { ConfigError } from '../errors.ts';

/** One word of a unit file's list, with systemd's specifiers taken literally. */
export function quote(text: string, separators = ''): string {
  let word = printable(text).replaceAll('%', '%%');
  if (/["'\\\s]/.test(word)) word = `"${word.replaceAll(/["\\]/g, '\\$&')}"`;
  return separators === '' ? word : word.replaceAll(':', '\\:');
}

export function printable(text: string): string {
  if (/\p{Cc}/u.test(text)) {
    throw new ConfigError(
      `cannot write units: ${JSON.stringify(text)} has control characters, which no unit file can hold`,
    );
  }
  return text;
}
