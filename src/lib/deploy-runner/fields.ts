// What the readers of actions and of events have in common.
import * as z from 'zod';
import { InputError } from '../errors.ts';

// What checks a few documents and ends is not worth compiling.
z.config({ jitless: true });

/** Absence is said in three ways. */
export const optional = <T extends z.ZodType>(shape: T) =>
  z.preprocess((raw) => (raw === null || raw === '' ? undefined : raw), shape.optional());

/** Throws InputError. `what`: as it is called in the message. */
export function parseWhole(what: string, bytes: Uint8Array, maxBytes: number): unknown {
  if (bytes.length > maxBytes) throw new InputError(`invalid ${what}: it is larger than ${maxBytes} bytes`);
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new InputError(`invalid ${what}: it is not whole JSON`);
  }
}
