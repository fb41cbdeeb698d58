// `hosts/<node>/services.yaml`: which services a node has. Names that are no service's stay in the list and match nothing.
import { parseDocument } from 'yaml';
import { describeError, InputError } from '../errors.ts';
import { isTooDeep, tooDeep } from '../yaml-depth.ts';

export const maxServicesBytes = 1024 * 1024;

/**
 * A list of names, or of mappings with `name`, mixed as well, at the top or under `services`. Throws InputError for anything else:
 * what is not understood lists nothing.
 */
export function parseServices(text: string): ReadonlySet<string> {
  const raw = parseYaml(text);
  const list = isMapping(raw) ? raw['services'] : raw;
  if (!Array.isArray(list)) throw new InputError('it is no list of services, and has none under "services"');
  return new Set(list.map((entry: unknown, index) => readName(entry, index)));
}

function parseYaml(text: string): unknown {
  // What it only warns of would go to stderr, past our own lines.
  const document = parseDocument(text, { prettyErrors: false, logLevel: 'error' });
  const [problem] = document.errors;
  if (problem !== undefined) throw refuse(problem.message);
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    throw refuse(describeError(error));
  }
}

function refuse(fault: string): InputError {
  return new InputError(isTooDeep(fault) ? tooDeep : `it is no YAML: ${fault}`);
}

function readName(entry: unknown, index: number): string {
  const name = isMapping(entry) ? entry['name'] : entry;
  if (typeof name === 'string' && name !== '') return name;
  throw new InputError(`its entry ${index + 1} is neither a name nor a mapping with a name`);
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
