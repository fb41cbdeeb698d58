// Reads desired.json. A document is taken whole or refused in one sentence; a service that cannot run is that service's own
// error. Nothing here ever takes a broken document for an empty one: that would remove everything.
import type * as z from 'zod';
import { InputError } from '../errors.ts';
import { compareBytewise } from './canonical.ts';
import { findProblems } from './rules.ts';
import { desiredEnvelopeSchema, ingressSchema, serviceSchema } from './schema.ts';
import { describeIssue, describePath, findUnknownFields } from './shape.ts';
import { type DesiredService, desiredVersion, type Ingress, serviceKey } from './wire.ts';

export type RejectedService = {
  /** Place in the document's list. */
  index: number;
  /** Absent where project and service cannot be told: then any container may be this service's. */
  key: string | undefined;
  reason: string;
  /** Its route as far as it can be read, so that what still runs of it stays reachable. */
  ingress: Ingress | undefined;
};

export type ParsedDesired = {
  document: { version: typeof desiredVersion; nodeId: string; updatedAt: string };
  /** In the document's order. */
  services: DesiredService[];
  rejected: RejectedService[];
  warnings: string[];
};

/** Far above any real document, far below what would hurt the node. */
const maxBytes = 16 * 1024 * 1024;
const maxDepth = 32;

/** Throws InputError unless the text is a whole document of our version. `source` is named in messages. */
export function parseDesired(text: string, source = 'desired.json'): ParsedDesired {
  const value = parseJson(text, source);
  const envelope = requireEnvelope(value, source);
  const parsed = envelope.services.map((raw, index) => parseService(raw, index));
  const rejected = parsed.filter((entry) => 'reason' in entry);
  const accepted = parsed.filter((entry) => 'service' in entry);
  const twice = findDuplicates([...accepted.map(({ service }) => serviceKey(service)), ...keysOf(rejected)]);
  const { version, nodeId, updatedAt } = envelope;
  return {
    document: { version, nodeId, updatedAt },
    services: accepted.map(({ service }) => service).filter((service) => !twice.has(serviceKey(service))),
    rejected: [...rejected, ...rejectDuplicates(accepted, twice)].sort((a, b) => a.index - b.index),
    warnings: unknownFieldWarnings(value, envelope.services, source),
  };
}

/** The text as JSON. Throws InputError in words for people, without quoting the document, which may hold secrets. */
export function parseJson(text: string, source: string): unknown {
  const refuse = (cause: string): InputError => new InputError(`cannot read "${source}": ${cause}`);
  if (text.length > maxBytes || Buffer.byteLength(text) > maxBytes) {
    throw refuse(`it is larger than ${maxBytes / 1024 / 1024} MiB`);
  }
  if (text.trim() === '') throw refuse('it is empty');
  if (text.includes('\0')) throw refuse('it holds NUL bytes, as a file does that was cut off by a crash');
  if (exceedsDepth(text)) throw refuse(`it is nested more than ${maxDepth} levels deep`);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw refuse(describeSyntaxError(error, text));
  }
}

type Accepted = { index: number; service: DesiredService };

function requireEnvelope(value: unknown, source: string): z.infer<typeof desiredEnvelopeSchema> {
  const refuse = (cause: string): InputError => new InputError(`cannot read "${source}": ${cause}`);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw refuse('it is no JSON object');
  }
  const version = 'version' in value ? JSON.stringify(value.version) : undefined;
  if (version !== String(desiredVersion)) {
    const found = version === undefined ? 'it names no version' : `it is of version ${version.slice(0, 40)}`;
    throw refuse(`${found}, and only version ${desiredVersion} is understood`);
  }
  const parsed = desiredEnvelopeSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw refuse(describeIssue(parsed.error.issues[0]));
}

function parseService(raw: unknown, index: number): Accepted | RejectedService {
  const parsed = serviceSchema.safeParse(raw);
  if (!parsed.success) return reject(raw, index, describeIssue(parsed.error.issues[0]));
  const [problem] = findProblems(parsed.data);
  if (problem !== undefined) return reject(raw, index, `${describePath(problem.path)}: ${problem.message}`);
  return { index, service: parsed.data };
}

function reject(raw: unknown, index: number, reason: string): RejectedService {
  const fields: Record<string, unknown> = typeof raw === 'object' && raw !== null ? { ...raw } : {};
  const { project, service } = fields;
  const named = typeof project === 'string' && typeof service === 'string';
  const ingress = ingressSchema.safeParse(fields['ingress']);
  return {
    index,
    key: named ? serviceKey({ project, service }) : undefined,
    reason,
    ingress: ingress.success ? ingress.data : undefined,
  };
}

function keysOf(rejected: readonly RejectedService[]): string[] {
  return rejected.flatMap(({ key }) => (key === undefined ? [] : [key]));
}

function findDuplicates(keys: readonly string[]): Set<string> {
  const seen = new Set<string>();
  const twice = new Set<string>();
  for (const key of keys) {
    if (seen.has(key)) twice.add(key);
    seen.add(key);
  }
  return twice;
}

/** Neither of two definitions is more right than the other, so both are refused. */
function rejectDuplicates(accepted: readonly Accepted[], twice: ReadonlySet<string>): RejectedService[] {
  return accepted
    .filter(({ service }) => twice.has(serviceKey(service)))
    .map(({ index, service }) => reject(service, index, `"${serviceKey(service)}" is there more than once`));
}

function unknownFieldWarnings(value: unknown, services: readonly unknown[], source: string): string[] {
  const names = new Set(findUnknownFields(desiredEnvelopeSchema, value));
  for (const service of services) {
    for (const field of findUnknownFields(serviceSchema, service)) names.add(`services[].${field}`);
  }
  if (names.size === 0) return [];
  const listed = [...names].sort(compareBytewise).join(', ');
  return [`fields in "${source}" that this version does not know are ignored: ${listed}`];
}

/** Nesting is bounded before anything walks the value by recursion. One pass, as the text may be hostile. */
function exceedsDepth(text: string): boolean {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] as string;
    if (inString && character === '\\') at++;
    else if (character === '"') inString = !inString;
    else if (!inString) depth += nesting[character] ?? 0;
    if (depth > maxDepth) return true;
  }
  return false;
}

const nesting: Readonly<Record<string, number>> = { '[': 1, '{': 1, ']': -1, '}': -1 };

function describeSyntaxError(error: unknown, text: string): string {
  const message = error instanceof Error ? error.message : '';
  const position = /at position (\d+)/.exec(message)?.[1];
  const atEnd = message.includes('end of JSON input') || Number(position) >= text.trimEnd().length;
  if (atEnd) return 'it is cut off';
  const line = /\(line (\d+) column (\d+)\)/.exec(message);
  return line === null ? 'it is no JSON' : `it is no JSON at line ${line[1]}, column ${line[2]}`;
}
