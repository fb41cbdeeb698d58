// The one line in which a command says why it failed.
import type { ProgramEnd } from './programs.ts';

/** Throws where there is not exactly one. */
export function sentenceOfProgram(end: ProgramEnd): string {
  const lines = end.stderr.split('\n').filter((line) => line.startsWith('reeve: '));
  if (lines.length !== 1) throw new Error(`not one sentence:\n${end.stderr}`);
  return lines[0]?.slice('reeve: '.length) ?? '';
}
