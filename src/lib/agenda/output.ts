// A command's output as the control plane gets it: text, of which the end is kept, led by a mark where the beginning is gone.
// Pure.
import { truncationMarker } from './wire.ts';

/** At most `maxBytes` long with the mark, as UTF-8; where there is no room for the mark, there is none. */
export function renderOutput(output: { bytes: Uint8Array; isCut: boolean }, maxBytes: number): string {
  const bytes = Buffer.from(output.bytes.buffer, output.bytes.byteOffset, output.bytes.byteLength);
  const text = (output.isCut ? bytes.subarray(firstCharacter(bytes)) : bytes).toString('utf8');
  // Bytes that are no text have become longer.
  if (!output.isCut && Buffer.byteLength(text) <= maxBytes) return text;
  const room = maxBytes - Buffer.byteLength(truncationMarker);
  return room <= 0 ? lastBytes(text, maxBytes) : `${truncationMarker}${lastBytes(text, room)}`;
}

function lastBytes(text: string, count: number): string {
  const bytes = Buffer.from(text);
  const last = bytes.subarray(Math.max(0, bytes.length - count));
  return last.subarray(firstCharacter(last)).toString('utf8');
}

/** Past the rest of a character whose beginning is gone: at most three continuation bytes. */
function firstCharacter(bytes: Uint8Array): number {
  let start = 0;
  while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return start;
}
