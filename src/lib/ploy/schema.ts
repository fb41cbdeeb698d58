// The shapes of what ploy sends. Unknown keys are let through, since servers are newer than nodes; known ones have their type.
import * as z from 'zod';
import { type FileSection, parseEntries } from './entries.ts';
import { normalizeStack } from './stack.ts';
import { jobTypes } from './wire.ts';

// What checks one document and ends is not worth compiling.
z.config({ jitless: true });

/** Ids become directories, labels and parts of a path. */
const id = z.string().regex(/^[0-9A-Za-z][\w-]{0,127}$/, 'is no id');
const sha40 = z.string().regex(/^[0-9a-f]{40}$/, 'is not 40 hex digits');

/** What an engine or a kernel would change or cut is refused. */
const plainText = z
  .string()
  .refine((text) => !/[\0\p{Surrogate}]/u.test(text), 'has characters that no program can be given');

/** Go leaves away what is empty, and takes null for it. */
const optional = <T extends z.ZodType>(shape: T) =>
  z.preprocess((raw) => (raw === null || raw === '' ? undefined : raw), shape.optional());

const releaseNumber = z.number().transform(String);

const stack = z
  .looseObject({
    language: optional(z.string()),
    tool: optional(z.string()),
    release: optional(z.union([z.string(), releaseNumber])),
  })
  .transform(({ language, tool, release }) =>
    normalizeStack({
      ...(language === undefined ? {} : { language }),
      ...(tool === undefined ? {} : { tool }),
      ...(release === undefined ? {} : { release }),
    }),
  );

/** As pairs: a map's key may be any text, `__proto__` too. */
const textMap = z
  .unknown()
  .optional()
  .transform((raw, ctx): ReadonlyMap<string, string> => {
    const map = new Map<string, string>();
    if (raw === undefined || raw === null) return map;
    if (typeof raw !== 'object' || Array.isArray(raw)) {
      ctx.addIssue('is no object');
      return map;
    }
    for (const [key, value] of Object.entries(raw)) {
      const parsed = plainText.safeParse(value);
      if (parsed.success && plainText.safeParse(key).success) map.set(key, parsed.data);
      else
        ctx.addIssue(
          `${JSON.stringify(key)} ${typeof value === 'string' ? 'has characters that no program can be given' : 'is no text'}`,
        );
    }
    return map;
  });

/** Names are what a process can have in its environment. */
const envs = textMap.refine(
  (map) => [...map.keys()].every((name) => name !== '' && !name.includes('=')),
  'has a name that no variable can have',
);

export const claimSchema = z.looseObject({
  id,
  name: optional(z.string()),
  repo_id: optional(z.string()).transform((value) => value ?? ''),
  attempt: optional(z.int()),
  job_id: id,
  job_name: optional(z.string()).transform((value) => value ?? ''),
  job_type: z.enum(jobTypes),
  job_image: optional(plainText).transform((value) => value?.trim() ?? ''),
  next_id: optional(id).transform((value) => value ?? null),
  repo_url: plainText.refine((url) => url.trim() !== '', 'is empty'),
  status: optional(z.string()).transform((value) => value ?? ''),
  node_id: optional(z.string()).transform((value) => value ?? ''),
  base_ref: optional(plainText).transform((value) => value ?? ''),
  commit_sha: optional(sha40),
  repo_sha_in: optional(sha40),
  started_at: optional(z.string()),
  created_at: optional(z.string()),
  spec: z.unknown().optional(),
  mig_context: optional(z.looseObject({ step_index: z.int().min(0) })),
  gate_context: optional(z.looseObject({ cycle_name: z.string() })),
  detected_stack: optional(stack),
  env: optional(envs.transform((map) => Object.fromEntries(map))),
});

const entries = (section: FileSection) =>
  optional(z.array(z.string())).transform((texts, ctx) => {
    try {
      return parseEntries(section, texts ?? []);
    } catch (error) {
      ctx.addIssue((error as Error).message);
      return [];
    }
  });

const image = z.union([
  plainText.transform((text): string | ReadonlyMap<string, string> => text.trim()),
  textMap.transform((map) => new Map([...map].map(([key, value]) => [key.trim(), value.trim()] as const))),
]);

const phase = optional(
  z
    .looseObject({ enabled: optional(z.boolean()), expect: optional(stack) })
    .transform(({ enabled, expect }, ctx) => {
      if (enabled === true && expect === undefined) ctx.addIssue('is enabled and expects nothing');
      if (enabled !== true && expect !== undefined) ctx.addIssue('expects a stack and is not enabled');
      return enabled === true ? expect : undefined;
    }),
);

const step = z.looseObject({
  name: optional(z.string()),
  image: image.refine((value) => (typeof value === 'string' ? value !== '' : value.size > 0), 'is required'),
  command: optional(z.union([plainText, z.array(plainText)])),
  envs,
  options: optional(z.looseObject({ mount_docker_socket: optional(z.boolean()) })),
  in: entries('in'),
  out: entries('out'),
  home: entries('home'),
  tmp: entries('tmp'),
  stack: optional(z.looseObject({ inbound: phase, outbound: phase })),
});

const gatePhase = optional(
  z.looseObject({
    stack: optional(
      z
        .looseObject({ mode: optional(z.enum(['forced', 'strict', 'fallback'])) })
        .transform((raw, ctx) => {
          const parsed = stack.safeParse(raw);
          if (!parsed.success) ctx.addIssue('has a stack of another type');
          return { mode: raw.mode, stack: parsed.data };
        })
        .refine(({ mode, stack }) => mode !== undefined || stack === undefined, 'has a stack without a mode')
        .refine(({ mode, stack }) => mode === undefined || stack !== undefined, 'has a mode without a stack')
        .refine(
          ({ mode, stack }) =>
            (mode !== 'forced' && mode !== 'fallback') ||
            Object.values({ ...stack }).every((value) => value !== ''),
          'needs language, tool and release',
        ),
    ),
  }),
);

const imageRule = z.looseObject({
  stack: stack.refine((value) => value !== undefined && value.language !== '', 'needs a language'),
  image: plainText.refine((text) => text.trim() !== '', 'is required'),
});

export const specSchema = z.looseObject({
  name: optional(z.string()),
  steps: z.array(step).min(1, 'is required'),
  envs,
  build_gate: optional(
    z.looseObject({
      disabled: optional(z.boolean()),
      pre: gatePhase,
      post: gatePhase,
      images: optional(z.array(imageRule)),
    }),
  ),
  bundle_map: textMap,
});
