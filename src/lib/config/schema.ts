// What people may write in reeve.yaml and in the seed systems' own files: types and spellings, key by key. What must
// be there, and what must fit together, is checked in the section modules, once a section's layers are merged.
// Messages are phrases that follow "must be".
import * as z from 'zod';
import { nodeIdPattern } from '../ids.ts';
import { bucketPattern, bucketRule, findBucketFault } from '../store/bucket-url.ts';

const text = z.string().min(1, { error: 'text that is not empty' });
const wholeNumber = z.int({
  error: (issue) => (issue.code === 'invalid_type' ? 'a whole number' : undefined),
});
const duration = z
  .string({ error: 'a duration such as 60s, 1m30s or 250ms' })
  .regex(/^(\d+(\.\d+)?(ms|s|m|h|d))+$/, { error: 'a duration such as 60s, 1m30s or 250ms' });
const absolutePath = z.string().regex(/^\/[^\0]*$/, { error: 'an absolute path' });
const webUrl = z
  .string()
  .regex(/^https?:\/\/[^\s/]+(\/\S*)?$/, { error: 'a URL that begins with http:// or https://' });
const nodeId = z
  .string()
  .regex(nodeIdPattern, { error: 'an id of up to 64 letters, digits, "_" and "-", not beginning with "-"' });
const fileUrl = '^file:///[^\\s?#]*$';
const bucketUrl = `^s3://${bucketPattern.source.slice(1, -1)}(/[^\\s?#]*)?$`;
const storeUrl = z.string().regex(new RegExp(`(${fileUrl})|(${bucketUrl})`), {
  error: ({ input }) =>
    typeof input === 'string' && input.startsWith('s3://')
      ? `s3://BUCKET[/PREFIX] (${findBucketFault(input)})`
      : 'file:///DIRECTORY or s3://BUCKET[/PREFIX]',
});
const userName = z
  .string()
  .regex(/^([A-Za-z_][A-Za-z0-9_.-]{0,31}|\d{1,10})$/, { error: 'the name of a user' });
const sectionFile = text.describe('the seed system’s own file; keys beside it win over it');

const roleName = z.enum(['app', 'edge']);
const role = z
  .union([roleName, z.array(roleName).min(1).max(2)], {
    error: (issue) =>
      issue.input === 'both'
        ? '"app", "edge" or [app, edge] (the legacy role "both" is refused)'
        : '"app", "edge" or [app, edge]',
  })
  .describe('what this node does');

const clusterSchema = z.strictObject({
  file: sectionFile.optional(),
  nodeId: nodeId.optional(),
  agentId: text.optional(),
  clusterId: nodeId.optional(),
  role: role.optional(),
  edgeId: nodeId.optional(),
  region: text.optional(),
  advertiseIp: text.optional(),
  publish: text.optional().describe('address that published ports are bound to, or "advertise"'),
  store: storeUrl.optional(),
  endpoint: webUrl.optional().describe('of an S3-compatible service'),
  secrets: z
    .string()
    .regex(new RegExp(`(${fileUrl})|^ssm$`), { error: 'file:///DIRECTORY or ssm' })
    .optional(),
  notify: z.enum(['none', 'sns']).optional(),
  logs: z
    .string()
    .regex(new RegExp(`(${fileUrl})|^cloudwatch$`), { error: 'file:///DIRECTORY or cloudwatch' })
    .optional(),
  backups: storeUrl.optional(),
  intervals: z
    .strictObject({
      tick: duration.optional(),
      liveness: duration.optional(),
      stats: duration.optional(),
      edge: duration.optional(),
    })
    .optional(),
  docker: z
    .strictObject({ socket: absolutePath.optional(), parallel: wholeNumber.min(1).max(64).optional() })
    .optional(),
  caddy: z
    .strictObject({
      admin: webUrl.optional(),
      httpPort: wholeNumber.min(1).max(65_535).optional(),
      httpsPort: wholeNumber.min(1).max(65_535).optional(),
      issuer: z.enum(['acme', 'internal']).optional(),
      email: z.string().optional(),
      acmeDirectory: webUrl.optional(),
    })
    .optional(),
  balancer: z.enum(['auto', 'haproxy', 'caddy']).optional(),
  haproxy: z.strictObject({ address: z.string().optional(), directory: absolutePath.optional() }).optional(),
});

/** ployd-node's tree. Empty text counts as left out, as in the original. */
export const jobsSchema = z.strictObject({
  file: sectionFile.optional(),
  server_url: z.string().optional(),
  node_id: z.string().optional(),
  concurrency: wholeNumber.optional(),
  http: z
    .strictObject({
      listen: z.string().optional(),
      read_timeout: duration.optional(),
      write_timeout: duration.optional(),
      idle_timeout: duration.optional(),
      tls: z
        .strictObject({
          enabled: z.boolean().optional(),
          cert_path: z.string().optional(),
          key_path: z.string().optional(),
          ca_path: z.string().optional(),
          bootstrap_ca_path: z.string().optional(),
        })
        .optional(),
    })
    .optional(),
  heartbeat: z.strictObject({ interval: duration.optional(), timeout: duration.optional() }).optional(),
});

/** agenda-node's keys, the user that commands run as, and the certificate of the API. */
export const commandsSchema = z.strictObject({
  file: sectionFile.optional(),
  listen_addr: z.string().optional(),
  proxy_listen_addr: z.string().optional(),
  proxy_backend_host: z.string().optional(),
  machine_id: wholeNumber.optional(),
  token: z.string().optional(),
  central_base_url: z.string().optional(),
  heartbeat_interval: duration.optional(),
  max_output_bytes: wholeNumber.min(0).optional(),
  job_retention: duration.optional(),
  proxy_drain_timeout: duration.optional(),
  user: userName.optional(),
  live_output: z.boolean().optional().describe('tell what a command has printed while it runs, too'),
  tls: z
    .strictObject({
      cert_path: absolutePath.optional(),
      key_path: absolutePath.optional(),
      ca_path: absolutePath.optional(),
    })
    .optional()
    .describe('of the management API: without it, it listens on private addresses only'),
});

/** A relative one would be another directory in each unit and shell, as is HOST:PATH whose `:PATH` has been forgotten. */
const rsyncPlace = z.string().regex(/^(?:\/|(?!-)(?:[^\s/[:]*@)?(?:\[[^\]/]*\]|[^\s/[:]+):)[^\0\n]*$/, {
  error: 'an absolute path, HOST:PATH or rsync://HOST/MODULE',
});

const actionsSchema = z.strictObject({
  file: sectionFile.optional(),
  node: z
    .string()
    .regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$/, { error: 'the name of a node' })
    .optional(),
  pull: rsyncPlace.optional().describe('rsync source of this node’s inbox'),
  push: rsyncPlace.optional().describe('rsync target of this node’s results'),
  checkout: absolutePath.optional(),
  script: z
    .string()
    .regex(/^(?![-/])(?!.*(^|\/)\.\.(\/|$))[^\0\n]+$/, {
      error: 'a path in the checkout, which does not begin with "/" and has no ".."',
    })
    .optional(),
  config: absolutePath.optional().describe('where the machine’s own compose files of services are'),
  timeout: duration.optional(),
  verify_timeout: duration.optional().describe('until what a deploy has started must run well'),
  user: userName.optional(),
  root: absolutePath.optional().describe('control side only: where the state directories are'),
});

const hooksSchema = z.strictObject({
  failure: z
    .strictObject({
      command: z.array(text).min(1).optional(),
      url: webUrl.optional(),
      timeout: duration.optional(),
    })
    .optional(),
});

export const configSchema = z.strictObject({
  cluster: clusterSchema.optional(),
  jobs: jobsSchema.optional(),
  commands: commandsSchema.optional(),
  actions: actionsSchema.optional(),
  hooks: hooksSchema.optional(),
});

/** launch-pad's identity file. Written by machines, so keys of newer versions are let through with a warning. */
export const agentJsonSchema = z.strictObject({
  nodeId,
  agentId: text,
  bucket: z.string().regex(bucketPattern, { error: `a bucket's name (${bucketRule})` }),
  region: text,
  clusterId: nodeId.optional(),
  role: z.enum(['app', 'edge'], {
    error: (issue) =>
      issue.input === 'both' ? '"app" or "edge" (the legacy role "both" is refused)' : '"app" or "edge"',
  }),
  advertiseIp: text.nullish(),
});

export type ClusterInput = z.infer<typeof clusterSchema>;
export type JobsInput = z.infer<typeof jobsSchema>;
export type CommandsInput = z.infer<typeof commandsSchema>;
export type ActionsInput = z.infer<typeof actionsSchema>;
export type HooksInput = z.infer<typeof hooksSchema>;
export type AgentJson = z.infer<typeof agentJsonSchema>;

/** The keys that an object schema knows at a path below it. */
export function knownKeysAt(schema: z.ZodType, path: readonly (string | number)[]): string[] {
  let current: z.ZodType | undefined = schema;
  for (const step of path) {
    const inner: z.ZodType | undefined = unwrap(current);
    current =
      inner instanceof z.ZodObject
        ? (inner.shape as Record<string, z.ZodType | undefined>)[String(step)]
        : undefined;
  }
  const target = unwrap(current);
  return target instanceof z.ZodObject ? Object.keys(target.shape) : [];
}

function unwrap(schema: z.ZodType | undefined): z.ZodType | undefined {
  return schema instanceof z.ZodOptional ? unwrap(schema.unwrap() as z.ZodType) : schema;
}

/** The JSON Schema of reeve.yaml, for editors. */
export function buildJsonSchema(): Record<string, unknown> {
  const { $schema, ...rest } = z.toJSONSchema(configSchema, { io: 'input' });
  return { $schema, title: 'reeve.yaml', description: 'The configuration of reeve', ...rest };
}
