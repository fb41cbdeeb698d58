// The seed systems' own configuration files, each in its own format, as a layer under a section of ours.
import type * as z from 'zod';
import { type ConfigDocument, type ParsedDocument, parseGoYaml, parseJson } from './document.ts';
import {
  describeProblem,
  describeUnknownKey,
  type Problem,
  readIssues,
  type UnknownKey,
  wantedOf,
} from './problems.ts';
import { type AgentJson, agentJsonSchema, commandsSchema, jobsSchema, knownKeysAt } from './schema.ts';
import type { Findings, Layer, RawSection } from './section.ts';
import type { Source } from './sources.ts';

export type SeedSection = 'cluster' | 'jobs' | 'commands' | 'actions';

type SeedFormat = {
  parse(file: string, text: string): ParsedDocument;
  schema?: z.ZodType;
  /** Written by machines: keys that a newer version may have added are let through. */
  tolerant?: boolean;
  /** Where a Go program has a number or a boolean. */
  scalars?: readonly { path: readonly string[]; parse(text: string): unknown }[];
  toSection(value: RawSection, document: ConfigDocument, findings: Findings): Omit<Layer, 'document'>;
};

const formats: Record<SeedSection, SeedFormat> = {
  cluster: { parse: parseJson, schema: agentJsonSchema, tolerant: true, toSection: fromAgentJson },
  jobs: {
    parse: parseGoYaml,
    schema: jobsSchema.omit({ file: true }),
    scalars: [
      { path: ['concurrency'], parse: parseInteger },
      { path: ['http', 'tls', 'enabled'], parse: parseBoolean },
    ],
    toSection: unchanged,
  },
  commands: {
    parse: parseGoYaml,
    schema: commandsSchema.omit({ file: true, user: true, live_output: true, tls: true }),
    scalars: [
      { path: ['machine_id'], parse: parseInteger },
      { path: ['max_output_bytes'], parse: parseInteger },
    ],
    toSection: unchanged,
  },
  actions: { parse: parseEnvironmentFile, toSection: fromDeployRunner },
};

/** Undefined if the file has problems, which are in the findings then. */
export function readSeedLayer(section: SeedSection, source: Source, findings: Findings): Layer | undefined {
  const format = formats[section];
  const { document, problems } = format.parse(source.path, source.text);
  findings.problems.push(...problems);
  if (document === undefined) return undefined;
  const value = document.value ?? {};
  if (format.scalars !== undefined) convertScalars(value, format.scalars);
  const { schema } = format;
  if (schema !== undefined && !checkShape({ document, value, schema, format }, findings)) return undefined;
  return { document, ...format.toSection(value as RawSection, document, findings) };
}

/** Answers whether the values have their types. */
function checkShape(
  file: { document: ConfigDocument; value: unknown; schema: z.ZodType; format: SeedFormat },
  findings: Findings,
): boolean {
  const { document, value, schema, format } = file;
  const parsed = schema.safeParse(value, { error: wantedOf });
  if (parsed.success) return true;
  const { problems, unknownKeys } = readIssues(parsed.error.issues, {
    document,
    value,
    base: [],
    knownKeys: (path) => knownKeysAt(schema, path),
  });
  findings.problems.push(...problems);
  const unknown = placeUnknownKeys(unknownKeys, document);
  if (format.tolerant === true) findings.warnings.push(...unknown.map(describeProblem));
  else findings.problems.push(...unknown);
  return problems.length === 0;
}

export function placeUnknownKeys(unknownKeys: readonly UnknownKey[], document: ConfigDocument): Problem[] {
  return unknownKeys.map((unknown) => ({
    file: document.file,
    ...document.placeOf([...unknown.path, unknown.key], 'key'),
    message: describeUnknownKey(unknown),
  }));
}

/** launch-pad's services are AWS's; only the identity is in its file. */
function fromAgentJson(value: RawSection): Omit<Layer, 'document'> {
  const agent = value as AgentJson;
  const { nodeId, agentId, region, clusterId, role } = agent;
  const aws = { secrets: 'ssm', notify: 'sns', logs: 'cloudwatch' };
  return {
    base: [],
    names: { store: 'bucket' },
    value: {
      ...aws,
      ...{ nodeId, agentId, region, clusterId, role },
      store: `s3://${agent.bucket}`,
      advertiseIp: agent.advertiseIp ?? undefined,
    },
  };
}

function fromDeployRunner(
  value: RawSection,
  document: ConfigDocument,
  findings: Findings,
): Omit<Layer, 'document'> {
  const { DEPLOY_TIMEOUT_SECS: timeout, ...others } = value;
  const unused = Object.keys(others);
  if (unused.length > 0) findings.warnings.push(`${document.file}: not used: ${unused.join(', ')}`);
  if (timeout === undefined) return { base: [], value: {} };
  if (!/^\d{1,9}$/.test(String(timeout))) {
    findings.problems.push({
      file: document.file,
      ...document.placeOf(['DEPLOY_TIMEOUT_SECS'], 'value'),
      message: `DEPLOY_TIMEOUT_SECS must be a whole number of seconds, not ${JSON.stringify(timeout)}`,
    });
  }
  return { base: [], names: { timeout: 'DEPLOY_TIMEOUT_SECS' }, value: { timeout: `${timeout}s` } };
}

function unchanged(value: RawSection): Omit<Layer, 'document'> {
  return { base: [], value };
}

function convertScalars(root: unknown, scalars: NonNullable<SeedFormat['scalars']>): void {
  for (const { path, parse } of scalars) {
    let holder = root;
    for (const step of path.slice(0, -1)) holder = (holder as RawSection | undefined)?.[step];
    const last = path.at(-1) as string;
    if (typeof holder !== 'object' || holder === null) continue;
    const text = (holder as Record<string, unknown>)[last];
    if (typeof text === 'string') (holder as Record<string, unknown>)[last] = parse(text);
  }
}

/** What is no integer stays text, for the schema to refuse. */
function parseInteger(text: string): unknown {
  return /^[-+]?\d+$/.test(text) ? Number(text) : text;
}

/** The words that a Go program takes for a boolean. */
function parseBoolean(text: string): unknown {
  if (/^(true|True|TRUE|y|Y|yes|Yes|YES|on|On|ON)$/.test(text)) return true;
  return /^(false|False|FALSE|n|N|no|No|NO|off|Off|OFF)$/.test(text) ? false : text;
}

/** `NAME=VALUE` lines as systemd's EnvironmentFile has them; the deploy-runner is set up by its environment alone. */
function parseEnvironmentFile(file: string, text: string): ParsedDocument {
  const value: Record<string, string> = {};
  const lineOf = new Map<string, number>();
  const problems: Problem[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*([#;].*)?$/.test(line)) continue;
    const match = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(?:"([^"]*)"|'([^']*)'|(.*?))\s*$/.exec(line);
    if (match === null) {
      problems.push({ file, line: index + 1, column: 1, message: 'this is not NAME=VALUE' });
      continue;
    }
    const name = match[1] as string;
    value[name] = match[2] ?? match[3] ?? match[4] ?? '';
    lineOf.set(name, index + 1);
  }
  const placeOf: ConfigDocument['placeOf'] = ([name]) => {
    const line = lineOf.get(String(name));
    return line === undefined ? undefined : { line, column: 1 };
  };
  return problems.length > 0 ? { problems } : { document: { file, value, placeOf }, problems };
}
