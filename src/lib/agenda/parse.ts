// What agenda's control plane sends, as typed values. Throws an InputError that names the field; nothing here has an effect.
import * as z from 'zod';
import { InputError } from '../errors.ts';
import type { JobRequest } from './wire.ts';

// What checks a few documents and ends is not worth compiling.
z.config({ jitless: true });

/** What a kernel would cut is refused. */
const plainText = z
  .string('is no text')
  .refine((text) => !/[\0\p{Surrogate}]/u.test(text), 'has characters that no program can be given');

/** Go leaves away what is empty, and takes null for it. */
const optional = <T extends z.ZodType>(shape: T) =>
  z.preprocess((raw) => (raw === null ? undefined : raw), shape.optional());

const assignment = plainText.refine((text) => text.indexOf('=') > 0, 'is no NAME=value');

/** Told is the first fault alone: a body has room for two million of them, and each would be an object. */
const listOf = (shape: z.ZodType<string>) =>
  z.array(z.unknown(), 'is no list').transform((items, ctx): string[] => {
    for (const [index, input] of items.entries()) {
      const message = shape.safeParse(input).error?.issues[0]?.message;
      if (message === undefined) continue;
      ctx.issues.push({ code: 'custom', message, input, path: [index] });
      return z.NEVER;
    }
    return items as string[];
  });

/** Control planes are newer than nodes: unknown keys are let through. */
const jobSchema = z.looseObject({
  job_id: optional(plainText.max(512, 'is longer than 512 characters')),
  dir: optional(plainText),
  env: optional(listOf(assignment)),
  mode: z.enum(['cmd', 'shell'], 'is neither "cmd" nor "shell"'),
  name: optional(plainText),
  args: optional(listOf(plainText)),
  shell: optional(plainText),
});

/** The body of `POST /v1/jobs`. */
export function parseJobRequest(raw: unknown): JobRequest {
  const { job_id: jobId = '', dir = '', env = [], mode, name, args, shell } = check(jobSchema, raw);
  if (jobId === '') throw new InputError('job_id is required');
  const common = { jobId, dir, env };
  if (mode === 'shell') return { ...common, mode, shell: requireGiven('shell', shell) };
  return { ...common, mode, name: requireGiven('name', name), args: args ?? [] };
}

function requireGiven(field: string, value: string | undefined): string {
  if (value === undefined || value === '') throw new InputError(`${field} is required in this mode`);
  return value;
}

function check<T>(schema: z.ZodType<T>, raw: unknown): T {
  const parsed = schema.safeParse(raw);
  if (parsed.success) return parsed.data;
  const { path, message } = parsed.error.issues[0] as z.core.$ZodIssue;
  if (path.length === 0) throw new InputError('invalid request: it is no object');
  const place = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
  throw new InputError(`invalid request: ${place.slice(1)} ${message}`);
}
