// Reads the file that `deploy` takes: YAML text in, services as desired.json has them out, or every mistake with its place.

import { knownFieldsAt } from '../cluster/shape.ts';
import { type DesiredService, serviceKey } from '../cluster/wire.ts';
import { type ConfigDocument, parseYaml } from '../config/document.ts';
import {
  describePath,
  describeUnknownKey,
  type Problem,
  readIssues,
  sortProblems,
  wantedOf,
} from '../config/problems.ts';
import { InputError } from '../errors.ts';
import { type DeployDefaults, toDesired } from './definition.ts';
import { type DefinedService, findFileProblems, findFileWarnings } from './rules.ts';
import { type DeployFileContent, deployFileSchema } from './schema.ts';

export type PlacedService = { key: string; nodes: readonly string[]; service: DesiredService };

export type DeployFile = { services: readonly PlacedService[]; warnings: readonly string[] };

/** Of a deploy file; whoever reads one need not read on. */
export const maxBytes = 4 * 1024 * 1024;
/** More mistakes than a person mends in one go. */
const maxTold = 20;

/** Throws InputError that names all mistakes. `file` is the path as the person wrote it. */
export function parseDeployFile(text: string, file: string, defaults: DeployDefaults): DeployFile {
  const document = parseDocument(text, file);
  const content = parseContent(document);
  if (content.cluster !== undefined && content.cluster !== defaults.clusterId) {
    const message = `it is for cluster "${content.cluster}", and this machine deploys to "${defaults.clusterId}"`;
    throw refuse(file, [{ file, ...document.placeOf(['cluster'], 'value'), message }]);
  }
  const defined: DefinedService[] = content.services.map((written) => ({
    written,
    desired: toDesired(written, defaults),
  }));
  const problems = findFileProblems(defined).map(({ path, message }): Problem => {
    const full = ['services', ...path];
    return { file, ...document.placeOf(full, 'value'), message: `${describePath(full)} ${message}` };
  });
  if (problems.length > 0) throw refuse(file, problems);
  return {
    services: defined.map(({ written, desired }) => ({
      key: serviceKey(desired),
      nodes: written.nodes,
      service: desired,
    })),
    warnings: findFileWarnings(defined),
  };
}

function parseDocument(text: string, file: string): ConfigDocument {
  if (Buffer.byteLength(text) > maxBytes) {
    throw refuse(file, [{ message: `it is larger than ${maxBytes / 1024 / 1024} MiB` }]);
  }
  if (text.trim() === '') throw refuse(file, [{ message: 'it is empty' }]);
  if (text.includes('\0')) throw refuse(file, [{ message: 'it holds NUL bytes' }]);
  const { document, problems } = parseYaml(file, text);
  // One fault leads to many: the first is the one to mend.
  if (document === undefined || problems.length > 0) throw refuse(file, problems.slice(0, 1));
  if (document.value === undefined) throw refuse(file, [{ message: 'it is empty' }]);
  return document;
}

function parseContent(document: ConfigDocument): DeployFileContent {
  const { file, value } = document;
  const parsed = deployFileSchema.safeParse(value, { error: wantedOf });
  if (parsed.success) return parsed.data;
  const { problems, unknownKeys } = readIssues(parsed.error.issues, {
    document,
    value,
    base: [],
    knownKeys: (path) => knownFieldsAt(deployFileSchema, path),
  });
  const unknown = unknownKeys.map((key) => ({
    file,
    ...document.placeOf([...key.path, key.key], 'key'),
    message: describeUnknownKey(key),
  }));
  throw refuse(file, [...problems, ...unknown]);
}

/** Without the file, which the sentence begins with. */
function describePlaced({ line, column, message }: Problem): string {
  return line === undefined ? message : `${line}:${column ?? 1}: ${message}`;
}

function refuse(file: string, problems: readonly Problem[]): InputError {
  const told = sortProblems(problems).slice(0, maxTold).map(describePlaced);
  const more = problems.length > told.length ? [`and ${problems.length - told.length} more`] : [];
  return new InputError(`cannot deploy "${file}": ${[...told, ...more].join('; ')}`);
}
