// What ploy sends, as typed values. Everything throws an InputError that names the field; nothing here has an effect.
import type * as z from 'zod';
import { InputError } from '../errors.ts';
import type { FileEntry } from './entries.ts';
import { claimSchema, specSchema } from './schema.ts';
import { isStackMatch, renderStack, type Stack } from './stack.ts';
import type { ClaimPayload } from './wire.ts';

export type Envs = ReadonlyMap<string, string>;

export type StepSpec = {
  image: string | ReadonlyMap<string, string>;
  /** Empty: the image's own. */
  command: readonly string[];
  envs: Envs;
  mountDockerSocket: boolean;
  files: readonly FileEntry[];
  /** Expected of the repository before the step, and after it. */
  inbound?: Stack | undefined;
  outbound?: Stack | undefined;
};

export type GateStack = { mode: 'forced' | 'strict' | 'fallback'; stack: Stack };

export type JobSpec = {
  steps: readonly StepSpec[];
  envs: Envs;
  gate: {
    isDisabled: boolean;
    pre?: GateStack | undefined;
    post?: GateStack | undefined;
    images: readonly { stack: Stack; image: string }[];
  };
  /** Of bundles: ids by the hash that entries name. */
  bundleIds: ReadonlyMap<string, string>;
};

export function parseClaimPayload(raw: unknown): ClaimPayload {
  const {
    detected_stack: detected,
    mig_context: mig,
    gate_context: gate,
    ...payload
  } = check(claimSchema, raw, 'claim');
  return {
    ...payload,
    ...(mig === undefined ? {} : { mig_context: { step_index: mig.step_index } }),
    ...(gate === undefined ? {} : { gate_context: { cycle_name: gate.cycle_name.trim() } }),
    ...(detected === undefined ? {} : { detected_stack: detected }),
  };
}

/** Whom a claim is about that does not parse: it has to be told how it ended all the same. */
export function findClaimIds(raw: unknown): { runId: string; jobId: string } | undefined {
  const found = claimSchema.pick({ id: true, job_id: true }).safeParse(raw);
  return found.success ? { runId: found.data.id, jobId: found.data.job_id } : undefined;
}

/** The body of `/v1/run/start`, as the claim that it stands for. */
export function parseRunStart(raw: unknown): ClaimPayload {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    throw new InputError('cannot use start request: it is no object');
  }
  // In the order in which the original looks for them.
  for (const name of ['run_id', 'job_id', 'job_type', 'repo_url'] as const) {
    const value = (raw as Readonly<Record<string, unknown>>)[name];
    if (value === undefined || value === null || value === '') {
      throw new InputError(`cannot use start request: ${name} is required`);
    }
  }
  const { run_id: id, status: _, ...rest } = raw as Readonly<Record<string, unknown>>;
  try {
    return { ...parseClaimPayload({ ...rest, id }), status: 'Running' };
  } catch (error) {
    const reason = (error as Error).message.replace('cannot use claim: id ', 'cannot use claim: run_id ');
    throw new InputError(reason.replace('cannot use claim', 'cannot use start request'), { cause: error });
  }
}

/** An absent spec has no step: then the claim's own image is what runs. */
export function parseSpec(raw: unknown): JobSpec {
  if (raw === undefined || raw === null) {
    return { steps: [], envs: new Map(), gate: { isDisabled: false, images: [] }, bundleIds: new Map() };
  }
  const { steps, envs, build_gate: gate, bundle_map: bundleIds } = check(specSchema, raw, 'spec');
  const spec: JobSpec = {
    steps: steps.map(toStep),
    envs,
    gate: {
      isDisabled: gate?.disabled === true,
      pre: toGateStack(gate?.pre?.stack),
      post: toGateStack(gate?.post?.stack),
      images: (gate?.images ?? []).map(({ stack, image }) => ({
        stack: stack as Stack,
        image: image.trim(),
      })),
    },
    bundleIds,
  };
  requireChain(spec.steps);
  requireDistinct(spec.gate.images);
  return spec;
}

type RawStep = z.infer<typeof specSchema>['steps'][number];

function toStep({ image, command, envs, options, stack, ...files }: RawStep): StepSpec {
  return {
    image,
    command: toCommand(command),
    envs,
    mountDockerSocket: options?.mount_docker_socket === true,
    files: [...files.in, ...files.out, ...files.home, ...files.tmp],
    inbound: stack?.inbound,
    outbound: stack?.outbound,
  };
}

/** A text is a shell's, a list is a program with its arguments. */
function toCommand(raw: string | readonly string[] | undefined): readonly string[] {
  if (typeof raw !== 'string') return raw ?? [];
  const text = raw.trim();
  return text === '' ? [] : ['/bin/sh', '-c', text];
}

function toGateStack(
  raw: { mode?: GateStack['mode'] | undefined; stack?: Stack | undefined } | undefined,
): GateStack | undefined {
  return raw?.mode === undefined || raw.stack === undefined
    ? undefined
    : { mode: raw.mode, stack: raw.stack };
}

/** What a step leaves is what the next one begins with. */
function requireChain(steps: readonly StepSpec[]): void {
  for (const [index, { inbound }] of steps.entries()) {
    const before = steps[index - 1]?.outbound;
    if (inbound === undefined || before === undefined) continue;
    if (isStackMatch(inbound, before) && isStackMatch(before, inbound)) continue;
    throw new InputError(
      `cannot use spec: steps[${index}].stack.inbound is ${renderStack(inbound)}, steps[${index - 1}] leaves ${renderStack(before)}`,
    );
  }
}

function requireDistinct(rules: JobSpec['gate']['images']): void {
  const seen = new Set<string>();
  for (const [index, { stack }] of rules.entries()) {
    const key = renderStack(stack);
    if (seen.has(key))
      throw new InputError(`cannot use spec: build_gate.images[${index}] is for ${key} as another one is`);
    seen.add(key);
  }
}

function check<T>(schema: z.ZodType<T>, raw: unknown, what: string): T {
  const parsed = schema.safeParse(raw);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0] as z.core.$ZodIssue;
  const path = issue.path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('');
  const place = path === '' ? 'it' : path.replace(/^\./, '');
  throw new InputError(`cannot use ${what}: ${place} ${toReason(issue)}`);
}

/** Sentences of ours begin with a verb; those of the schema package do not. */
function toReason({ code, message }: z.core.$ZodIssue): string {
  if (code === 'invalid_type' && message.endsWith('received undefined')) return 'is missing';
  return /^(is|has|needs|expects) /.test(message) || code === 'custom' ? message : `is wrong: ${message}`;
}
