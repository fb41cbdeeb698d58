// What systemctl lists, as values. Pure. Fields that a version leaves out are undefined, not errors.
import * as z from 'zod';
import { InputError } from '../errors.ts';

const unitFiles = z.array(z.object({ unit_file: z.string(), state: z.string() }));
const units = z.array(z.object({ unit: z.string(), active: z.string(), sub: z.string() }));
const timerRuns = z.array(z.object({ unit: z.string(), next: z.number().nullish(), activates: z.string() }));

export type UnitFile = { unit: string; state: string };
export type LoadedUnit = z.infer<typeof units>[number];
export type TimerRun = { unit: string; nextAt: Date | undefined; activates: string };

export function parseUnitFiles(raw: unknown): UnitFile[] {
  return parseList('unit files', unitFiles, raw).map(({ unit_file: unit, state }) => ({ unit, state }));
}

export function parseUnits(raw: unknown): LoadedUnit[] {
  return parseList('units', units, raw);
}

export function parseTimerRuns(raw: unknown): TimerRun[] {
  return parseList('timers', timerRuns, raw).map(({ unit, next, activates }) => ({
    unit,
    activates,
    nextAt: parseMicroseconds(next),
  }));
}

/** `@1795982809`, as `--timestamp=unix` has it; undefined where there is no instant. */
export function parseUnixTimestamp(text: string | undefined): Date | undefined {
  const seconds = /^@(\d+)$/.exec(text ?? '')?.[1];
  return seconds === undefined || seconds === '0' ? undefined : new Date(Number(seconds) * 1000);
}

/** `NAME=VALUE` lines as `EnvironmentFile=` has them, of which a value may stand in quotes. */
export function parseEnvironment(text: string): Record<string, string> {
  const found = text.matchAll(/^[ \t]*([A-Za-z_]\w*)=(?:"([^"]*)"|'([^']*)'|(.*?))[ \t]*$/gm);
  return Object.fromEntries(
    [...found].map(([, name = '', inDouble, inSingle, bare]) => [name, inDouble ?? inSingle ?? bare ?? '']),
  );
}

/** No next run is null, 0 or the largest number there is, by version. */
function parseMicroseconds(value: number | null | undefined): Date | undefined {
  if (value === undefined || value === null || value <= 0 || value >= Number.MAX_SAFE_INTEGER)
    return undefined;
  return new Date(value / 1000);
}

function parseList<T>(what: string, schema: z.ZodType<T>, raw: unknown): T {
  const parsed = schema.safeParse(raw);
  if (parsed.success) return parsed.data;
  throw new InputError(`cannot read the list of ${what} that systemctl gives`, { cause: parsed.error });
}
