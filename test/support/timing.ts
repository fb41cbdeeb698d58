// How long processes take, compared in one run: in turn, so that whatever else the machine does meets all of them.
import { startProcess } from './programs.ts';

export type TimedCase = { argv: readonly [string, ...string[]]; env: Readonly<Record<string, string>> };

/** Median milliseconds of each case. The first round warms up and does not count. Throws where one fails. */
export async function measureInTurn<Name extends string>(
  rounds: number,
  cases: Readonly<Record<Name, TimedCase>>,
): Promise<Record<Name, number>> {
  const names = Object.keys(cases) as Name[];
  const times = new Map<Name, number[]>(names.map((name) => [name, []]));
  for (let round = 0; round <= rounds; round += 1) {
    for (const name of names) {
      const tookMs = await timeProcess(cases[name]);
      if (round > 0) times.get(name)?.push(tookMs);
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(times.get(name) ?? [])])) as Record<
    Name,
    number
  >;
}

async function timeProcess({ argv: [file, ...args], env }: TimedCase): Promise<number> {
  const started = performance.now();
  const end = await startProcess(file, args, env).ended;
  const tookMs = performance.now() - started;
  if (end.status !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${end.status}:\n${end.stderr}`);
  return tookMs;
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
