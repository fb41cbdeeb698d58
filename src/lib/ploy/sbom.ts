// The packages that a gate's SBOM names, as the server keeps them: SPDX or CycloneDX, both as JSON. Pure.
import { InputError } from '../errors.ts';

/** In a run's shared directory. */
export const sbomName = 'sbom.spdx.json';

export type SbomPackage = { package: string; version: string };

type Pair = { name: unknown; version: unknown };

/** Sorted, each once, names in lower case; what lacks a name or a version is left out. Throws InputError for a list that is none. */
export function parseSbom(text: string): SbomPackage[] {
  const found = new Map<string, SbomPackage>();
  for (const { name, version } of listPairs(text)) {
    const one = { package: toWord(name).toLowerCase(), version: toWord(version) };
    if (one.package !== '' && one.version !== '') found.set(`${one.package}\0${one.version}`, one);
  }
  return [...found.keys()].sort().flatMap((key) => found.get(key) ?? []);
}

function listPairs(text: string): Pair[] {
  const document = parseObject(text);
  if ('spdxVersion' in document || 'packages' in document) {
    return toList('packages', document['packages']).map((one) => ({
      name: one['name'],
      version: one['versionInfo'],
    }));
  }
  const pairs: Pair[] = [];
  // Nested ones are met in turn, however deep.
  let level = toList('components', document['components']);
  while (level.length > 0) {
    for (const { name, version } of level) pairs.push({ name, version });
    level = level.flatMap((one) => toList('components', one['components']));
  }
  return pairs;
}

function toList(name: string, value: unknown): Record<string, unknown>[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new InputError(`cannot read the SBOM: ${name} is no list`);
  return value.filter((one) => typeof one === 'object' && one !== null);
}

/** What is no JSON object names no package. */
function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

function toWord(value: unknown): string {
  return typeof value === 'string' ? value.trim() : '';
}
