// The shapes of launch-pad's documents as zod schemas, for what reads them at the door. Everything else takes the types of
// wire.ts, which costs no start-up time.
import * as z from 'zod';
import { desiredVersion } from './wire.ts';

const text = z.string().min(1);
const count = z.int().min(1);

/** zod leaves out a key named `__proto__` without a word; a variable must never get lost. */
const envSchema = z
  .unknown()
  .refine((env) => typeof env !== 'object' || env === null || !Object.hasOwn(env, '__proto__'), {
    message: 'a variable cannot be named "__proto__"',
  })
  .pipe(z.record(z.string(), z.string()));

const secretRefSchema = z.object({ name: z.string().regex(/^[A-Z][A-Z0-9_]*$/), ssm: text });
export const volumeSchema = z.object({ name: text, path: z.string().startsWith('/') });
export const ingressSchema = z.object({ domain: text, port: z.int().min(1).max(65535), edge: text });
export const healthCheckSchema = z.object({
  path: z.string().startsWith('/'),
  port: z.int().min(1).max(65535).optional(),
  intervalMs: count.default(2000),
  timeoutMs: count.default(2000),
  healthyThreshold: count.default(2),
});
export const rolloutSchema = z.object({
  maxSurge: count.default(1),
  drainTimeout: z.string().default('20s'),
  stopGrace: z.string().default('30s'),
});
export const databaseSchema = z.object({
  engine: z.literal('postgres'),
  version: text,
  databases: z.array(text).default([]),
});
/**
 * What is kept beyond `retentionDays`, an addition of reeve's: written only where the user asked for it. Loose, since a tier of a
 * newer version that was dropped here would remove what is to be kept.
 */
export const retentionSchema = z.looseObject({
  last: count.optional(),
  daily: count.optional(),
  weekly: count.optional(),
  monthly: count.optional(),
  yearly: count.optional(),
  /** So many good ones stay whatever else says. */
  minimum: count.optional(),
});
export const backupSchema = z.object({
  schedule: text,
  retentionDays: count,
  bucket: text,
  prefix: z.string(),
  retention: retentionSchema.optional(),
  timeZone: text.optional(),
});
export const jobRunSchema = z.object({ id: text, requestedAt: text });

/** One service on one node; unknown fields of newer writers are dropped. */
export const serviceSchema = z.object({
  project: text,
  service: text,
  image: text,
  cpu: count,
  memory: count,
  replicas: count.default(1),
  env: envSchema.default({}),
  secretRefs: z.array(secretRefSchema).default([]),
  restartAt: z.string().optional(),
  cron: z.string().optional(),
  /** Zone of `cron`, an addition of reeve's: written only where the user asked for it. */
  timeZone: text.optional(),
  ingress: ingressSchema.nullable().default(null),
  healthCheck: healthCheckSchema.nullable().default(null),
  rollout: rolloutSchema.default({ maxSurge: 1, drainTimeout: '20s', stopGrace: '30s' }),
  volumes: z.array(volumeSchema).default([]),
  database: databaseSchema.optional(),
  backup: backupSchema.optional(),
  jobRun: jobRunSchema.optional(),
});

/** The envelope: services are parsed one by one, so that a bad one is its own error and not the tick's. */
export const desiredEnvelopeSchema = z.object({
  version: z.literal(desiredVersion),
  nodeId: text,
  updatedAt: text,
  services: z.array(z.unknown()),
});
