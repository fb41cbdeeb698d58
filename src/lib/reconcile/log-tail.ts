// The end of a failed container's log as it goes into messages, state files and status. What programs write is anybody's:
// it comes out short, without secrets, and without what would steer a terminal. Pure.
import type { Redact } from '../exec/redact.ts';

/** Enough to see why. */
export const lastLogLines = 10;
const maxLineLength = 400;

export function renderLogTail(logs: string, redact: Redact): string {
  // Cut afterwards: half a secret would not be recognised.
  const lines = redact(logs).trim().split('\n').slice(-lastLogLines).map(cleanLine);
  return foldRepeats(lines).join('\n');
}

/** Tabs become blanks, and what else steers a terminal goes. */
export function cleanLine(line: string): string {
  const clean = line
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\p{Cc}(\[[\d;]*[A-Za-z])?/gu, '')
    .trim();
  return clean.length <= maxLineLength ? clean : `${clean.slice(0, maxLineLength)}...`;
}

/** Ten times the same line says no more than once. */
function foldRepeats(lines: readonly string[]): string[] {
  const folded: { line: string; times: number }[] = [];
  for (const line of lines) {
    const last = folded.at(-1);
    if (last?.line === line) last.times += 1;
    else folded.push({ line, times: 1 });
  }
  return folded.map(({ line, times }) => (times === 1 ? line : `${line} (${times} times)`));
}
