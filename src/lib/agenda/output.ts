// A command's output as the control plane gets it: text, of which the end is kept, led by a mark where the beginning is gone.
// Pure.
import { decodeKept, type KeptBytes } from '../last-bytes.ts';
import { truncationMarker } from './wire.ts';

/** At most `maxBytes` long with the mark, as UTF-8; where there is no room for the mark, there is none. */
export function renderOutput(output: KeptBytes, maxBytes: number): string {
  const text = decodeKept(output);
  // Bytes that are no text have become longer.
  if (!output.isCut && Buffer.byteLength(text) <= maxBytes) return text;
  const room = maxBytes - Buffer.byteLength(truncationMarker);
  return room <= 0 ? cutText(text, maxBytes) : `${truncationMarker}${cutText(text, room)}`;
}

function cutText(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  const isCut = bytes.length > maxBytes;
  return decodeKept({ bytes: isCut ? bytes.subarray(bytes.length - maxBytes) : bytes, isCut });
}
