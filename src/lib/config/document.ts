// One configuration file as text: its plain value, and where in it each key stands. The only user of the yaml package
// besides what prints YAML, so it is imported only when a configuration is compiled.
import { type Document, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from 'yaml';
import { describeError } from '../errors.ts';
import { isTooDeep, tooDeep } from '../yaml-depth.ts';
import type { Problem } from './problems.ts';

export type KeyPath = readonly (string | number)[];
type Place = { line: number; column: number };

export type ConfigDocument = {
  file: string;
  /** Plain data; `undefined` for an empty file. */
  value: unknown;
  /** The place of a key or of its value; of the nearest thing above it where it is missing. */
  placeOf(path: KeyPath, part: 'key' | 'value'): Place | undefined;
};

export type ParsedDocument = { document?: ConfigDocument; problems: readonly Problem[] };

/** YAML as people write it for us: scalars have YAML 1.2 types. */
export function parseYaml(file: string, text: string): ParsedDocument {
  return parseWith(file, text, 'core');
}

/**
 * YAML that a Go program reads: the destination decides a scalar's type, so that `node_id: 007` is text, and null is
 * the same as leaving the key out. All scalars come back as text; the caller turns its few numbers and booleans.
 */
export function parseGoYaml(file: string, text: string): ParsedDocument {
  return parseWith(file, text, 'failsafe');
}

/** JSON; the YAML parser only tells where things are. */
export function parseJson(file: string, text: string): ParsedDocument {
  try {
    const value: unknown = JSON.parse(text);
    const { document } = parseWith(file, text, 'core');
    return { document: { file, value, placeOf: document?.placeOf ?? (() => undefined) }, problems: [] };
  } catch (error) {
    return { problems: [{ file, ...placeInJsonError(error), message: 'this is not valid JSON' }] };
  }
}

function parseWith(file: string, text: string, schema: 'core' | 'failsafe'): ParsedDocument {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    ...{ schema, merge: true, lineCounter: lines, prettyErrors: false },
    // What it only warns of would go to stderr, past our own lines.
    logLevel: 'error',
  });
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0) {
    const problems = faults.map((fault) => ({
      file,
      ...toPlace(lines, fault.pos[0]),
      message: describeFault(fault.code, fault.message),
    }));
    return { problems };
  }
  try {
    if (schema === 'failsafe') dropNulls(document);
    const value: unknown = document.contents === null ? undefined : (document.toJS() ?? undefined);
    return {
      document: { file, value, placeOf: (path, part) => findPlace(document.contents, lines, path, part) },
      problems: [],
    };
  } catch (error) {
    const fault = describeError(error);
    const message = isTooDeep(fault) ? tooDeep : `cannot resolve an alias: ${fault}`;
    return { problems: [{ file, message }] };
  }
}

function describeFault(code: string, message: string): string {
  if (code === 'DUPLICATE_KEY') return 'this key stands twice in the same mapping';
  if (code === 'MULTIPLE_DOCS') return 'a second YAML document begins here: only one is read';
  if (isTooDeep(message)) return tooDeep;
  return `this is not valid YAML: ${message.charAt(0).toLowerCase()}${message.slice(1)}`;
}

function dropNulls(document: Document): void {
  visit(document, {
    Pair: (_key, pair) => {
      const { value } = pair;
      if (value === null) return visit.REMOVE;
      const isPlain = isScalar(value) && value.type === 'PLAIN';
      return isPlain && /^(~|null|Null|NULL|)$/.test(String(value.value)) ? visit.REMOVE : undefined;
    },
  });
}

function findPlace(
  root: Node | null,
  lines: LineCounter,
  path: KeyPath,
  part: 'key' | 'value',
): Place | undefined {
  let node: unknown = root;
  let place = toPlace(lines, startOf(root));
  for (const [index, step] of path.entries()) {
    const found = stepInto(node, step);
    if (found === undefined) return place;
    node = found.value;
    const isLast = index === path.length - 1;
    const target = isLast && part === 'value' ? (found.value ?? found.key) : found.key;
    place = toPlace(lines, startOf(target)) ?? place;
  }
  return place;
}

function stepInto(node: unknown, step: string | number): { key: unknown; value: unknown } | undefined {
  if (isMap(node)) {
    const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === String(step));
    return pair && { key: pair.key, value: pair.value };
  }
  if (isSeq(node) && typeof step === 'number' && node.items[step] !== undefined) {
    return { key: node.items[step], value: node.items[step] };
  }
  return undefined;
}

function startOf(node: unknown): number | undefined {
  return (node as { range?: [number, number, number] | null } | undefined)?.range?.[0];
}

function toPlace(lines: LineCounter, offset: number | undefined): Place | undefined {
  if (offset === undefined) return undefined;
  const { line, col } = lines.linePos(offset);
  return { line, column: col };
}

/** V8 names the place in its message, and quotes the text around it, which must not be repeated. */
function placeInJsonError(error: unknown): Place | undefined {
  const match = /line (\d+) column (\d+)/.exec(describeError(error));
  return match === null ? undefined : { line: Number(match[1]), column: Number(match[2]) };
}
