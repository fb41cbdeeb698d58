// What a zod schema says about a value, in words for people: unknown fields by their path, and issues as one clause.
import * as z from 'zod';

type Issue = z.core.$ZodIssue;

/** Paths of fields in the value that the schema does not know, list places left open: `ingress.tls`, `volumes[].mode`. */
export function findUnknownFields(schema: z.core.$ZodType, value: unknown, path = ''): string[] {
  const inner = unwrap(schema);
  if (inner instanceof z.ZodArray && Array.isArray(value)) {
    const unknown = value.flatMap((element) => findUnknownFields(inner.element, element, `${path}[]`));
    return [...new Set(unknown)];
  }
  if (!(inner instanceof z.ZodObject) || typeof value !== 'object' || value === null) return [];
  const shape: Record<string, z.core.$ZodType> = inner.shape;
  return Object.entries(value).flatMap(([name, member]) => {
    const memberPath = path === '' ? name : `${path}.${name}`;
    const known = Object.hasOwn(shape, name) ? shape[name] : undefined;
    return known === undefined ? [memberPath] : findUnknownFields(known, member, memberPath);
  });
}

/** Names of the fields that the schema knows at a place; none where it is no object. */
export function knownFieldsAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  const inner = unwrap(schema);
  const [step, ...rest] = path;
  if (step === undefined) return inner instanceof z.ZodObject ? Object.keys(inner.shape) : [];
  if (inner instanceof z.ZodArray) return knownFieldsAt(inner.element, rest);
  if (!(inner instanceof z.ZodObject)) return [];
  const member: z.core.$ZodType | undefined = inner.shape[String(step)];
  return member === undefined ? [] : knownFieldsAt(member, rest);
}

/** `volumes[0].path: expected string, found number`. */
export function describeIssue(issue: Issue | undefined): string {
  if (issue === undefined) return 'it does not have the right form';
  const place = describePath(issue.path);
  const message = lowerFirst(
    issue.message.replace(/^Invalid input: /, '').replace(/, received /, ', found '),
  );
  return place === '' ? message : `${place}: ${message}`;
}

export function describePath(path: readonly PropertyKey[]): string {
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
    .join('')
    .replace(/^\./, '');
}

const wrappers = [z.ZodOptional, z.ZodNullable, z.ZodDefault, z.ZodPrefault];

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  for (const wrapper of wrappers) if (schema instanceof wrapper) return unwrap(schema.unwrap());
  return schema;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
