// Which keys a store accepts. A key becomes a path, a URL and a line in a log, so only plain ones pass, in every driver.
import { InputError } from '../errors.ts';

/** S3's limit for a key, and what a file system takes for one name, less room for suffixes. */
const maxKeyBytes = 1024;
const maxPartBytes = 240;

/** Throws InputError unless the key is a plain slash-separated name. */
export function requireKey(key: string): void {
  const fault = key === '' ? 'it is empty' : findFault(key, key.split('/'));
  if (fault !== undefined) throw new InputError(`cannot use store key ${JSON.stringify(key)}: ${fault}`);
}

export function isKey(key: string): boolean {
  return key !== '' && findFault(key, key.split('/')) === undefined;
}

/** A prefix may be empty, end in a slash, and end in the middle of a name. */
export function requirePrefix(prefix: string): void {
  if (prefix === '') return;
  const parts = prefix.split('/');
  if (parts.at(-1) === '') parts.pop();
  const fault = findFault(prefix, parts);
  if (fault !== undefined)
    throw new InputError(`cannot list store prefix ${JSON.stringify(prefix)}: ${fault}`);
}

function findFault(key: string, parts: readonly string[]): string | undefined {
  if (key.startsWith('/')) return 'it begins with a slash';
  if (/[\p{Cc}\p{Cs}]/u.test(key)) return 'it has a control character or half a character';
  if (parts.includes('')) return 'a part of it is empty';
  if (parts.some((part) => part.startsWith('.'))) return 'a part of it begins with a dot';
  if (Buffer.byteLength(key) > maxKeyBytes) return `it is longer than ${maxKeyBytes} bytes`;
  if (parts.some((part) => Buffer.byteLength(part) > maxPartBytes)) {
    return `a part of it is longer than ${maxPartBytes} bytes`;
  }
  return undefined;
}
