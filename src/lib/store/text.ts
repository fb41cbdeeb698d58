// Bytes from elsewhere as text, or not at all: a value that came through changed would be worse than none.
import { InputError } from '../errors.ts';

/** A document is read into memory; objects beyond this are streamed. */
const maxDocumentBytes = 64 * 1024 * 1024;

/** Throws InputError for an object that is no document by its size. */
export function requireDocumentSize(sizeBytes: number, key: string): void {
  if (sizeBytes <= maxDocumentBytes) return;
  throw new InputError(`cannot read ${JSON.stringify(key)} as a document: it has ${sizeBytes} bytes`);
}

/** Throws InputError for what is not UTF-8. `source` is named in the message. */
export function decodeText(bytes: Uint8Array, source: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw new InputError(`cannot read ${JSON.stringify(source)}: it is not UTF-8 text`, { cause: error });
  }
}
