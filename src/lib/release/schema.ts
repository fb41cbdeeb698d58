// What people may write in the file that `deploy` reads. Strict: a misspelt field must not be a silent default.
// Messages complete the sentence "FIELD must be ...".
import * as z from 'zod';
import { isWireDuration } from '../cluster/duration.ts';
import {
  backupSchema,
  databaseSchema,
  healthCheckSchema,
  ingressSchema,
  jobRunSchema,
  retentionSchema,
  rolloutSchema,
  serviceSchema,
  volumeSchema,
} from '../cluster/schema.ts';
import { nodeIdPattern } from '../ids.ts';

const text = z.string().min(1);
const secretName = z.string().regex(/^[A-Z][A-Z0-9_]*$/, 'a name of capital letters, digits and "_"');
const instant = z.iso.datetime('an instant such as 2026-06-04T03:00:00Z');
const duration = z.string().refine(isWireDuration, 'a duration such as "20s" (ms, s or m)');

/** The share of a CPU and the memory of a service that names none. */
const defaultCpu = 512;
const defaultMemory = 256;
/** The engine refuses to run a container with less. */
const minMemory = 6;

const { shape } = serviceSchema;

const deployServiceSchema = z.strictObject({
  project: text,
  service: text,
  image: text,
  nodes: z.array(z.string().regex(nodeIdPattern, 'the id of a node')).min(1, 'a list with at least one node'),
  replicas: shape.replicas,
  cpu: shape.cpu.default(defaultCpu),
  memory: z.int().min(minMemory).default(defaultMemory),
  env: shape.env,
  secrets: z.array(secretName).default([]),
  secretRefs: z.array(z.strictObject({ name: secretName, ssm: text })).default([]),
  restartAt: text.optional(),
  cron: text.optional(),
  timeZone: text.optional(),
  ingress: ingressSchema.extend({ edge: text.optional() }).strict().nullable().default(null),
  healthCheck: z
    .strictObject(
      { ...healthCheckSchema.shape, path: z.string().startsWith('/', 'a path that starts with "/"') },
      { error: (issue) => (issue.code === 'invalid_type' ? httpCheckOnly : undefined) },
    )
    .nullable()
    .default(null),
  rollout: z
    .strictObject({
      ...rolloutSchema.shape,
      drainTimeout: duration.default('20s'),
      stopGrace: duration.default('30s'),
    })
    .prefault({}),
  volumes: z
    .array(
      z.strictObject({
        ...volumeSchema.shape,
        path: z.string().startsWith('/', 'a path that starts with "/"'),
      }),
    )
    .default([]),
  database: databaseSchema.strict().optional(),
  backup: backupSchema
    .extend({
      bucket: text.optional(),
      prefix: text.optional(),
      retention: retentionSchema
        .strict()
        .refine((retention) => Object.keys(retention).length > 0, {
          error: 'a mapping with at least one tier',
          // What has an unknown key alone is told of that one.
          when: ({ issues }) => issues.length === 0,
        })
        .optional(),
    })
    .strict()
    .optional(),
  jobRun: jobRunSchema.extend({ requestedAt: instant }).strict().optional(),
});

const httpCheckOnly = 'a mapping with a path: checks are HTTP requests, not commands';

export const deployFileSchema = z.strictObject({
  cluster: text.optional(),
  services: z.array(deployServiceSchema).min(1, 'a list with at least one service'),
});

export type DeployService = z.infer<typeof deployServiceSchema>;
export type DeployFileContent = z.infer<typeof deployFileSchema>;
