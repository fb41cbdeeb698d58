// desired.json as text in pieces: what we do not own goes back byte for byte, fields of other versions, number spellings and
// all. Pure.
import { parseDesired, parseJson } from '../cluster/desired.ts';
import { splitList, splitObject } from '../cluster/json-text.ts';
import { desiredVersion, serviceKey } from '../cluster/wire.ts';

export type RawService = {
  /** As it stands in the document. */
  readonly text: string;
  readonly value: unknown;
  /** Undefined where project and service cannot be told. */
  readonly key: string | undefined;
};

export type RawDesired = {
  readonly nodeId: string;
  readonly updatedAt: string;
  /** Members of the document in their order, `services` among them with an empty text. */
  readonly members: readonly { readonly name: string; readonly text: string }[];
  readonly services: readonly RawService[];
};

/** Throws InputError unless it is a whole document of our version. */
export function parseRawDesired(text: string, source: string): RawDesired {
  const { document } = parseDesired(text, source);
  const members = splitObject(text);
  const services = members.findLast((member) => member.name === 'services')?.text ?? '[]';
  return {
    nodeId: document.nodeId,
    updatedAt: document.updatedAt,
    members: members.map(({ name, text: member }) => ({ name, text: name === 'services' ? '' : member })),
    services: splitList(services).map((element) => toRawService(element, source)),
  };
}

/** The document of a node that has none yet. */
export function emptyDesired(nodeId: string): RawDesired {
  const members = [
    { name: 'version', text: String(desiredVersion) },
    { name: 'nodeId', text: JSON.stringify(nodeId) },
    { name: 'updatedAt', text: '""' },
    { name: 'services', text: '' },
  ];
  return { nodeId, updatedAt: '', members, services: [] };
}

/** A service of ours as it stands in a document with two-space indentation. */
export function renderService(value: {
  project: string;
  service: string;
  [field: string]: unknown;
}): RawService {
  const text = JSON.stringify(value, null, 2).replaceAll('\n', '\n    ');
  return { text, value, key: serviceKey(value) };
}

export function renderRawDesired(
  document: RawDesired,
  changed: { updatedAt: string; services: readonly RawService[] },
): string {
  const services = changed.services.map(({ text }) => `\n    ${text}`).join(',');
  const texts: Readonly<Record<string, string>> = {
    updatedAt: JSON.stringify(changed.updatedAt),
    services: services === '' ? '[]' : `[${services}\n  ]`,
  };
  const members = document.members.map(({ name, text }) => {
    return `  ${JSON.stringify(name)}: ${Object.hasOwn(texts, name) ? texts[name] : text}`;
  });
  return `{\n${members.join(',\n')}\n}\n`;
}

function toRawService(text: string, source: string): RawService {
  const value = parseJson(text, source);
  const named = value as { project?: unknown; service?: unknown } | null;
  const { project, service } = typeof named === 'object' && named !== null ? named : {};
  const isNamed = typeof project === 'string' && typeof service === 'string';
  return { text, value, key: isNamed ? serviceKey({ project, service }) : undefined };
}
