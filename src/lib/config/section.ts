// A section of the configuration while it is compiled: what stands in reeve.yaml over what stands in the seed system's
// file, with a way to report a problem at the right place in either.
import { formatDuration, parseDuration } from '../time.ts';
import type { ConfigDocument, KeyPath } from './document.ts';
import type { Overrides } from './environment.ts';
import type { Paths } from './paths.ts';
import { describePath, type Problem } from './problems.ts';

export type RawSection = Readonly<Record<string, unknown>>;

/** One document's part of a section. `base` leads to it; `names` has the document's own names for our keys. */
export type Layer = {
  document: ConfigDocument;
  base: KeyPath;
  value: RawSection;
  names?: Readonly<Record<string, string>>;
};

export type Findings = { problems: Problem[]; warnings: string[] };

export type Section<T> = {
  readonly name: string;
  readonly value: T;
  /** Reports a problem with a key: `message` follows the key's full name. */
  report(path: KeyPath, message: string): void;
  /** Reports a problem that is not in any file. */
  reportOutside(message: string): void;
  warn(message: string): void;
};

export type Surroundings = { paths: Paths; overrides: Overrides };

/** Earlier layers win. */
export function mergeSection<T>(name: string, layers: readonly Layer[], findings: Findings): Section<T> {
  const value = layers.toReversed().reduce<RawSection>((under, layer) => mergeOver(under, layer.value), {});
  return {
    name,
    value: value as T,
    report: (path, message) => {
      findings.problems.push({
        ...locate(layers, path),
        message: `${describePath([name, ...path])} ${message}`,
      });
    },
    reportOutside: (message) => findings.problems.push({ message }),
    warn: (message) => findings.warnings.push(message),
  };
}

function mergeOver(under: RawSection, over: RawSection): RawSection {
  const merged: Record<string, unknown> = { ...under };
  for (const [key, value] of Object.entries(over)) {
    if (value === undefined) continue;
    const below = merged[key];
    merged[key] = isRecord(below) && isRecord(value) ? mergeOver(below, value) : value;
  }
  return merged;
}

function isRecord(value: unknown): value is RawSection {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function locate(layers: readonly Layer[], path: KeyPath): Partial<Problem> {
  const holder = layers.find((layer) => hasPath(layer.value, path));
  const layer = holder ?? layers.at(-1);
  if (layer === undefined) return {};
  const [first, ...rest] = path;
  const own = first === undefined ? [] : [layer.names?.[String(first)] ?? first, ...rest];
  const place =
    holder === undefined
      ? layer.document.placeOf(layer.base, 'key')
      : layer.document.placeOf([...layer.base, ...own], 'value');
  return { file: layer.document.file, ...place };
}

function hasPath(value: unknown, path: KeyPath): boolean {
  let current = value;
  for (const step of path) {
    if (typeof current !== 'object' || current === null) return false;
    current = (current as RawSection)[String(step)];
    if (current === undefined) return false;
  }
  return path.length > 0;
}

/** A duration that the schema has let through. */
export function toMs(text: string): number;
export function toMs(text: string | undefined): number | undefined;
export function toMs(text: string | undefined): number | undefined {
  return text === undefined ? undefined : parseDuration(text);
}

/** As Go programs have it: zero means the default, of which whoever wrote it is warned. */
export function readDuration(
  { name, warn }: Pick<Section<unknown>, 'name' | 'warn'>,
  path: KeyPath,
  { text, defaultMs }: { text: string | undefined; defaultMs: number },
): number {
  const ms = toMs(text);
  if (ms === 0) {
    warn(`${describePath([name, ...path])} ${text} means the default, ${formatDuration(defaultMs)}`);
  }
  return ms || defaultMs;
}

/** Text that is not empty, or undefined. */
export function given(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

export function isWebUrl(text: string): boolean {
  return /^https?:\/\//.test(text) && URL.canParse(text);
}
