// Image references as people write them: `[registry[:port]/]path[:tag][@digest]`.
import { InputError } from '../errors.ts';

export type ImageReference = {
  /** Host and port of the registry; `docker.io` where none is written. */
  registry: string;
  /** Registry and path as written, without tag and digest. */
  name: string;
  tag: string | undefined;
  digest: string | undefined;
};

const component = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const registryPattern = /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::\d{1,5})?$/;
const tagPattern = /^\w[\w.-]{0,127}$/;
const digestPattern = /^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$/;
const imageIdPattern = /^sha256:[0-9a-f]{12,64}$/;

/** Throws InputError for what no engine would take. */
export function parseImageReference(text: string): ImageReference {
  const refuse = (why: string): never => {
    throw new InputError(`cannot read image reference ${JSON.stringify(text.slice(0, 300))}: ${why}`);
  };
  const [beforeDigest = '', digest, ...rest] = text.split('@');
  if (rest.length > 0 || (digest !== undefined && !digestPattern.test(digest))) refuse('bad digest');
  const colon = beforeDigest.lastIndexOf(':');
  const hasTag = colon > beforeDigest.lastIndexOf('/');
  const name = hasTag ? beforeDigest.slice(0, colon) : beforeDigest;
  const tag = hasTag ? beforeDigest.slice(colon + 1) : undefined;
  if (tag !== undefined && !tagPattern.test(tag)) refuse('bad tag');
  const { registry, path } = splitName(name);
  if (!registryPattern.test(registry)) refuse('bad registry');
  if (name.length > 255 || !path.split('/').every((part) => component.test(part))) refuse('bad name');
  return { registry, name, tag, digest };
}

const ecrPattern =
  /^\d{12}\.dkr(?:\.ecr(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?|-ecr(?:-fips)?\.([a-z0-9-]+)\.on\.aws)$/;

/** The region of a private registry of AWS, whose credentials are the machine's role; undefined for any other registry. */
export function ecrRegionOf(registry: string): string | undefined {
  const [, region, dualStackRegion] = ecrPattern.exec(registry) ?? [];
  return region ?? dualStackRegion;
}

/** The reference or image id as it stands in a request path. */
export function imagePath(text: string): string {
  if (!imageIdPattern.test(text)) parseImageReference(text);
  return text.split('/').map(encodeURIComponent).join('/');
}

/** A first part with a dot, a colon or a capital is a registry, and so is `localhost`; others are paths on Docker Hub. */
function splitName(name: string): { registry: string; path: string } {
  const slash = name.indexOf('/');
  const first = name.slice(0, slash);
  if (slash > 0 && (/[.:A-Z]/.test(first) || first === 'localhost')) {
    return { registry: first, path: name.slice(slash + 1) };
  }
  return { registry: 'docker.io', path: name };
}
