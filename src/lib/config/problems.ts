// What is wrong in a configuration, as sentences with their place. Values are quoted only where they cannot be secret.
import type * as z from 'zod';
import type { ConfigDocument, KeyPath } from './document.ts';

export type Problem = { file?: string; line?: number; column?: number; message: string };

/** `/etc/reeve/reeve.yaml:12:5: unknown key "intervall" in cluster: did you mean "intervals"?` */
export function describeProblem(problem: Problem): string {
  if (problem.file === undefined) return problem.message;
  const place = problem.line === undefined ? '' : `:${problem.line}:${problem.column ?? 1}`;
  return `${problem.file}${place}: ${problem.message}`;
}

/** By file in the order met, then by place. */
export function sortProblems(problems: readonly Problem[]): Problem[] {
  const files = [...new Set(problems.map((problem) => problem.file))];
  const rank = (problem: Problem): readonly number[] => [
    files.indexOf(problem.file),
    problem.line ?? 0,
    problem.column ?? 0,
  ];
  return problems.toSorted((a, b) => {
    const [left, right] = [rank(a), rank(b)];
    const differing = left.findIndex((value, index) => value !== right[index]);
    return differing < 0 ? 0 : (left[differing] as number) - (right[differing] as number);
  });
}

export type UnknownKey = { path: KeyPath; key: string; known: readonly string[] };

/** Turns a schema's issues into problems and unknown keys. The schemas' messages are phrases: "must be <message>". */
export function readIssues(
  issues: readonly z.core.$ZodIssue[],
  about: { document: ConfigDocument; value: unknown; base: KeyPath; knownKeys(path: KeyPath): string[] },
): { problems: Problem[]; unknownKeys: UnknownKey[] } {
  const problems: Problem[] = [];
  const unknownKeys: UnknownKey[] = [];
  for (const issue of issues) {
    const path = issue.path.map((step) => (typeof step === 'symbol' ? String(step) : step));
    if (issue.code === 'unrecognized_keys') {
      const known = about.knownKeys(path);
      for (const key of issue.keys) unknownKeys.push({ path: [...about.base, ...path], key, known });
      continue;
    }
    const full = [...about.base, ...path];
    problems.push({
      file: about.document.file,
      ...about.document.placeOf(full, 'value'),
      message: describeMismatch(full, issue.message, valueAt(about.value, path)),
    });
  }
  return { problems, unknownKeys };
}

export function describeUnknownKey(unknown: UnknownKey): string {
  const where = unknown.path.length === 0 ? 'at the top level' : `in ${describePath(unknown.path)}`;
  const near = findNearest(unknown.key, unknown.known);
  const hint = near === undefined ? `known keys are ${unknown.known.join(', ')}` : `did you mean "${near}"?`;
  return `unknown key ${JSON.stringify(unknown.key)} ${where}: ${hint}`;
}

function describeMismatch(path: KeyPath, wanted: string, value: unknown): string {
  const name = path.length === 0 ? 'the file' : describePath(path);
  if (value === undefined) return `${name} is missing`;
  return `${name} must be ${wanted}, not ${describeValue(value, isSecretPath(path))}`;
}

/** The phrase for what a schema says by itself, without a message of ours. */
export function wantedOf(issue: z.core.$ZodRawIssue): string {
  if (issue.code === 'invalid_type') return typePhrases[issue.expected] ?? issue.expected;
  if (issue.code === 'too_small')
    return issue.origin === 'number' ? `at least ${issue.minimum}` : 'not empty';
  if (issue.code === 'too_big') return `at most ${issue.maximum}`;
  if (issue.code === 'invalid_value') {
    return issue.values.map((value) => JSON.stringify(value)).join(' or ');
  }
  return 'something else';
}

const typePhrases: Record<string, string> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'a mapping',
  array: 'a list',
};

export function describePath(path: KeyPath): string {
  let text = '';
  for (const step of path)
    text += typeof step === 'number' ? `[${step}]` : `${text === '' ? '' : '.'}${step}`;
  return text;
}

function isSecretPath(path: KeyPath): boolean {
  return /(^|\.)(token|hooks\.failure)(\.|$)/.test(describePath(path));
}

function describeValue(value: unknown, secret: boolean): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a mapping';
  if (secret) return typeof value === 'string' ? 'this text' : `this ${typeof value}`;
  if (typeof value !== 'string') return `the ${typeof value} ${String(value)}`;
  const shown = value.length > 60 ? `${value.slice(0, 60)}...` : value;
  return JSON.stringify(shown.replace(/\/\/[^/@]*@/, '//***@'));
}

function valueAt(value: unknown, path: KeyPath): unknown {
  let current = value;
  for (const step of path) {
    if (typeof current !== 'object' || current === null) return undefined;
    current = (current as Record<string | number, unknown>)[step];
  }
  return current;
}

/** The known key that a typing mistake away is meant; undefined where none is near. */
export function findNearest(key: string, known: readonly string[]): string | undefined {
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[_-]/g, '');
  const scored = known.map((candidate) => ({
    candidate,
    distance: editDistance(plain(key), plain(candidate)),
  }));
  const best = scored.toSorted((a, b) => a.distance - b.distance)[0];
  if (best === undefined) return undefined;
  return best.distance <= Math.max(2, Math.floor(key.length / 3)) ? best.candidate : undefined;
}

/** Insertions, deletions, substitutions and swaps of neighbours, each counting one. */
function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const substitution = (previous[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let best = Math.min(substitution, (previous[j] as number) + 1, (current[j - 1] as number) + 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwap) best = Math.min(best, (beforePrevious[j - 2] as number) + 1);
      current.push(best);
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[b.length] as number;
}
