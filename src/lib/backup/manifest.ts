// What a backup says of itself, as documents beside it: the manifest, written last and never changed, the evidence that
// was gathered later, and what retention has taken out of the set. Both are read from a store that others can write to, so nothing in them is believed unseen.
import * as z from 'zod';
import { describeIssue } from '../cluster/shape.ts';

const text = z.string();
const count = z.number().int().min(0);
const instant = z.iso.datetime();
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

const fileSchema = z.object({
  key: text.min(1),
  /** Of the object, compressed. */
  sizeBytes: count,
  /** Of the object, compressed. */
  sha256,
});

const tableSchema = z.object({ schema: text, table: text, rows: count });
export type TableRows = z.infer<typeof tableSchema>;

const dumpSchema = fileSchema.extend({
  database: text.min(1),
  /** Decompressed. */
  rawBytes: count,
  /** Counted in the dump's own snapshot. */
  tables: z.array(tableSchema),
});
export type DumpRecord = z.infer<typeof dumpSchema>;

const manifestSchema = z.object({
  version: z.literal(1),
  ...{ project: text, service: text, nodeId: text },
  engine: text,
  /** As the server tells it: `15.18`. */
  serverVersion: text,
  image: text,
  imageId: text,
  /** The scheduled fire that the set is named after. */
  firedAt: instant,
  ...{ startedAt: instant, endedAt: instant },
  /** Roles and tablespaces; absent where they could not be had, which `failures` tells. */
  globals: fileSchema.extend({ passwords: z.enum(['included', 'excluded']) }).optional(),
  /** Good ones alone: dumped, decompressed and hashed to the end, and found whole in the store. */
  databases: z.array(dumpSchema),
  /** `database` is null for what belongs to none of them, as the globals. */
  failures: z.array(z.object({ database: text.nullable(), error: text })),
  skipped: z.array(z.object({ database: text, reason: text })),
});
export type Manifest = z.infer<typeof manifestSchema>;

const evidenceSchema = z.object({
  version: z.literal(1),
  checkedAt: instant,
  /** Of roles and tablespaces. */
  globals: z.object({ level: z.enum(['broken', 'readable', 'restored']), error: text.optional() }).optional(),
  databases: z.array(
    z.object({
      database: text.min(1),
      level: z.enum(['broken', 'readable', 'restored']),
      /** Why it is broken, or was not restored although it was tried. */
      error: text.optional(),
    }),
  ),
});
export type Evidence = z.infer<typeof evidenceSchema>;

const prunedSchema = z.object({
  version: z.literal(1),
  /** Whose dumps of the set retention has removed, or is about to: those that are still there are as good as before. */
  databases: z.array(text.min(1)),
});
export type Pruned = z.infer<typeof prunedSchema>;

/** The document, or why it is none. */
export type Parsed<Value> = { value: Value } | { fault: string };

export function parseManifest(source: string): Parsed<Manifest> {
  return parseWith(manifestSchema, source);
}

export function parseEvidence(source: string): Parsed<Evidence> {
  return parseWith(evidenceSchema, source);
}

export function parsePruned(source: string): Parsed<Pruned> {
  return parseWith(prunedSchema, source);
}

function parseWith<Value>(schema: z.ZodType<Value>, source: string): Parsed<Value> {
  let raw: unknown;
  try {
    raw = JSON.parse(source);
  } catch {
    return { fault: 'it is no JSON' };
  }
  const result = schema.safeParse(raw);
  return result.success ? { value: result.data } : { fault: describeIssue(result.error.issues[0]) };
}
