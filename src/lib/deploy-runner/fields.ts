// What the readers of actions and of events have in common.
import * as z from 'zod';
import { InputError } from '../errors.ts';

// What checks a few documents and ends is not worth compiling.
z.config({ jitless: true });

/** Absence is said in three ways. */
export const optional = <T extends z.ZodType>(shape: T) =>
  z.preprocess((raw) => (raw === null || raw === '' ? undefined : raw), shape.optional());

/** Real ones have three or four. What is far deeper can be read, and not be written again. */
const mostLevels = 50;

/** Throws InputError. `what`: as it is called in the message. What is let in can be parsed, and rendered, by anybody. */
export function parseWhole(what: string, bytes: Uint8Array, maxBytes: number): unknown {
  if (bytes.length > maxBytes) throw new InputError(`invalid ${what}: it is larger than ${maxBytes} bytes`);
  const value = parse(what, bytes);
  if (isDeeper(value, mostLevels))
    throw new InputError(`invalid ${what}: it has more than ${mostLevels} levels`);
  return value;
}

/** A byte order mark is none of JSON's. */
function parse(what: string, bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    throw new InputError(`invalid ${what}: it is not whole JSON`);
  }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1));
}
