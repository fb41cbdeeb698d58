// The bodies that each route of ploy's server takes: no other field, no other type.
import * as z from 'zod';
import { base64, count, instant, int32, text } from './body.ts';

const optionalText = text.nullish();
const freeObject = z.record(z.string(), z.unknown());

/** What belongs to one kind of job is refused of another. */
const jobMeta = z.discriminatedUnion('kind', [
  z.looseObject({
    ...{ kind: z.literal('mig'), gate: z.null().optional(), build: z.null().optional() },
    ...{ mig_step_name: text.optional(), mig_step_index: count.nullish(), gate_cycle_name: text.optional() },
  }),
  z.looseObject({ kind: z.literal('gate'), build: z.null().optional(), mig_step_index: z.null().optional() }),
  z.looseObject({
    ...{ kind: z.literal('build'), gate: z.null().optional(), mig_step_index: z.null().optional() },
    gate_cycle_name: z.literal('').optional(),
  }),
]);

/** Inside of `stats` the server takes more than it knows, but not of another type. */
const stats = z.looseObject({
  exit_code: int32.optional(),
  duration_ms: z.int().optional(),
  error: text.optional(),
  metadata: z.record(z.string(), z.string()).nullish(),
  job_resources: z
    .looseObject({
      cpu_consumed_ns: count.optional(),
      disk_consumed_bytes: count.optional(),
      mem_consumed_bytes: count.optional(),
    })
    .nullish(),
  job_meta: z.union([z.strictObject({}), jobMeta]).nullish(),
  gate: z.looseObject({ passed: z.boolean(), duration_ms: count.optional() }).nullish(),
  timings: z.record(z.string(), count).nullish(),
});

export const shapes = {
  complete: z.strictObject({
    status: text,
    exit_code: int32.nullish(),
    stats: stats.optional(),
    repo_sha_out: text.optional(),
  }),
  logs: z.strictObject({ run_id: text, job_id: optionalText, chunk_no: int32, data: base64 }),
  jobLogs: z.strictObject({ chunk_no: int32, data: base64 }),
  events: z.strictObject({
    run_id: text,
    events: z.array(
      z.strictObject({
        job_id: optionalText,
        time: optionalText,
        level: text,
        message: text,
        meta: freeObject.nullish(),
      }),
    ),
  }),
  diff: z.strictObject({ patch: base64, summary: freeObject.nullish() }),
  artifact: z.strictObject({ bundle: base64, name: optionalText }),
  image: z.strictObject({ image: text }),
  sbom: z.strictObject({ packages: z.array(z.strictObject({ package: text, version: text })) }),
  diagnostics: z.strictObject({
    component: text,
    status: text,
    last_error: optionalText,
    version: optionalText,
    image_ref: optionalText,
    local_image_id: optionalText,
    remote_image_id: optionalText,
    details: freeObject.optional(),
    last_checked_at: instant.nullish(),
    last_success_at: instant.nullish(),
  }),
  daemonLogs: z.strictObject({ component: text, stream: text, lines: z.array(text) }),
  heartbeat: z.strictObject({
    cpu_free_millis: z.int(),
    cpu_total_millis: z.int(),
    mem_free_bytes: z.int(),
    mem_total_bytes: z.int(),
    disk_free_bytes: z.int(),
    disk_total_bytes: z.int(),
    version: text.optional(),
  }),
  bootstrap: z.strictObject({ csr: text }),
};
