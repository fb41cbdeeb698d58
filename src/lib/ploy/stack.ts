// Stacks: what a repository is built with, and the images that are named after it.
import { InputError } from '../errors.ts';

/** Any of them may be unknown; what is not said of an expectation fits everything. */
export type Stack = { language: string; tool: string; release: string };

/** Undefined where nothing is known. */
export function normalizeStack(
  raw: { language?: string; tool?: string; release?: string | undefined } | undefined,
): Stack | undefined {
  const { language = '', tool = '', release = '' } = raw ?? {};
  const stack = { language: language.trim(), tool: tool.trim(), release: release.trim() };
  return Object.values(stack).some((value) => value !== '') ? stack : undefined;
}

export function isStackMatch(expected: Stack, actual: Stack): boolean {
  return (['language', 'tool', 'release'] as const).every(
    (name) => expected[name] === '' || expected[name] === actual[name],
  );
}

export function renderStack({ language, tool, release }: Stack): string {
  return [language, tool, release].map((value) => value || '*').join('/');
}

/** The key of a map of images by stack. Only Java has keys of its own. */
function toImageKey(stack: Stack | undefined): string {
  if (stack === undefined || stack.language.toLowerCase() !== 'java') return 'unknown';
  const tool = stack.tool.toLowerCase();
  if (tool === 'maven' || tool === 'gradle') return `java-${tool}`;
  return tool === 'java' ? 'java' : 'unknown';
}

export function resolveImage(image: string | ReadonlyMap<string, string>, stack: Stack | undefined): string {
  if (typeof image === 'string') return image;
  const key = toImageKey(stack);
  const found = image.get(key) || image.get('default');
  if (found) return found;
  throw new InputError(`cannot choose an image: none is named for stack "${key}" and none is the default`);
}

/** `${stack.tool}` and the like, then `$NAME` and `${NAME}` of the node's own environment. Nothing may stay open. */
export function expandImage(
  template: string,
  stack: Stack | undefined,
  nodeEnv: Readonly<Record<string, string | undefined>>,
): string {
  const open: string[] = [];
  const take = (value: string | undefined, placeholder: string): string => {
    if (value === undefined || value === '') open.push(placeholder);
    return value ?? '';
  };
  const image = template
    .replaceAll(/\$\{stack\.([^}]+)\}/g, (placeholder, name: string) => {
      const key = name.trim();
      const isKnown = key === 'language' || key === 'tool' || key === 'release';
      return take(isKnown ? stack?.[key] : undefined, placeholder);
    })
    .replaceAll(/\$\{[A-Za-z_]\w*\}|\$[A-Za-z_]\w*/g, (placeholder) =>
      take(readOwn(nodeEnv, placeholder.replaceAll(/[${}]/g, '')), placeholder),
    );
  if (open.length > 0)
    throw new InputError(`cannot expand image ${JSON.stringify(template)}: ${open.join(', ')} has no value`);
  if (image.trim() === '') throw new InputError('cannot choose an image: it is empty');
  return image.trim();
}

function readOwn(record: Readonly<Record<string, string | undefined>>, name: string): string | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
