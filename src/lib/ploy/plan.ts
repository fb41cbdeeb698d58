// What one container of a job is made from. Pure: a claim and its spec in, typed inputs out; no part of a spec that is wrong
// ever gets near an engine.
import { InputError } from '../errors.ts';
import type { FileEntry } from './entries.ts';
import { containerDirs } from './names.ts';
import type { JobSpec, StepSpec } from './parse.ts';
import { expandImage, isStackMatch, normalizeStack, renderStack, resolveImage, type Stack } from './stack.ts';
import type { ClaimPayload } from './wire.ts';

export type Execution =
  | {
      kind: 'container';
      image: string;
      /** Empty: the image's own. */
      command: readonly string[];
      env: Readonly<Record<string, string>>;
      workingDir: string;
      stepIndex: number;
      files: readonly PlannedFile[];
      /** `/tmp` is mounted only where something is to lie in it. */
      needsTmp: boolean;
      mountDockerSocket: boolean;
      stack?: Stack | undefined;
    }
  /** A gate that is switched off: it has passed, and nothing runs. */
  | { kind: 'passed'; reason: string }
  /** A gate whose repository is of another stack than it has to be: it has failed, and nothing runs. */
  | { kind: 'failed'; reason: string };

/** `dst` is absolute in each. The bundle has what goes there under the name `content`. */
export type PlannedFile = FileEntry & { bundleId: string };

export type ExecutionFacts = {
  payload: ClaimPayload;
  spec: JobSpec;
  serverUrl: string;
  /** For images that are named by a variable of the node. */
  nodeEnv: Readonly<Record<string, string | undefined>>;
  /** What a gate of the same run has found before, where the claim does not say. */
  knownStack?: Stack | undefined;
};

/** Throws an InputError where it cannot be told what is to run. */
export function planExecution(facts: ExecutionFacts): Execution {
  return facts.payload.job_type === 'mig' ? planMig(facts) : planGate(facts, facts.payload.job_type);
}

function planMig(facts: ExecutionFacts): Execution {
  const { payload, spec, nodeEnv } = facts;
  const stepIndex = findStepIndex(payload, spec.steps.length);
  const step = spec.steps[stepIndex];
  const stack = findStack(facts);
  const template = payload.job_image || (step === undefined ? undefined : resolveImage(step.image, stack));
  if (template === undefined)
    throw new InputError('cannot choose an image: neither the claim nor a spec names one');
  const env = new Map([
    ...mergeEnvs(facts, step),
    ...stackEnv(stack),
    ['PLOY_SERVER_URL', facts.serverUrl] as const,
  ]);
  const files = (step?.files ?? []).map((entry) => planFile(entry, spec, env));
  return {
    kind: 'container',
    image: expandImage(template, stack, nodeEnv),
    command: step?.command ?? [],
    env: Object.fromEntries(env),
    ...{ workingDir: containerDirs.workspace, stepIndex, files, stack },
    needsTmp: files.some(({ section }) => section === 'tmp'),
    mountDockerSocket: step?.mountDockerSocket === true,
  };
}

/** With one step it is that one. With several the claim says which, or the job's name does: `mig-2`. */
function findStepIndex({ mig_context: context, job_name: name }: ClaimPayload, count: number): number {
  if (count <= 1) return 0;
  const index = context?.step_index ?? Number(/^mig-(\d{1,6})$/.exec(name.trim())?.[1] ?? Number.NaN);
  if (Number.isNaN(index)) {
    throw new InputError(
      `cannot find step of job ${JSON.stringify(name)}: neither its context nor its name has a number`,
    );
  }
  if (index >= count) throw new InputError(`cannot find step ${index}: the spec has ${count} steps`);
  return index;
}

function findStack({ payload, knownStack }: ExecutionFacts): Stack | undefined {
  return normalizeStack(payload.detected_stack) ?? knownStack;
}

/** The spec's for all steps, then the step's own, then what a start request has. */
function mergeEnvs({ payload, spec }: ExecutionFacts, step: StepSpec | undefined): Map<string, string> {
  return new Map([...spec.envs, ...(step?.envs ?? []), ...Object.entries(payload.env ?? {})]);
}

function stackEnv(stack: Stack | undefined): [string, string][] {
  if (stack === undefined) return [];
  const pairs: [string, string][] = [
    ['PLOY_STACK_LANGUAGE', stack.language],
    ['PLOY_STACK_TOOL', stack.tool],
    ['PLOY_STACK_RELEASE', stack.release],
  ];
  return pairs.filter(([, value]) => value !== '');
}

function planFile(entry: FileEntry, { bundleIds }: JobSpec, env: ReadonlyMap<string, string>): PlannedFile {
  const bundleId = bundleIds.get(entry.hash);
  if (bundleId === undefined)
    throw new InputError(`cannot find bundle ${entry.hash}: bundle_map does not have it`);
  if (entry.section !== 'home') return { ...entry, bundleId };
  const home = env.get('HOME') || '/root';
  if (!home.startsWith('/') || home.split('/').includes('..')) {
    throw new InputError(`cannot place files in the home: HOME ${JSON.stringify(home)} is no absolute path`);
  }
  return { ...entry, bundleId, dst: `${home.replace(/\/+$/, '')}/${entry.dst}` };
}

/** A gate runs an image's own command on the workspace; files and sockets are for steps alone. */
function planGate(facts: ExecutionFacts, jobType: 'pre_gate' | 'post_gate'): Execution {
  const { payload, spec, nodeEnv } = facts;
  if (spec.gate.isDisabled) return { kind: 'passed', reason: 'the build gate is disabled' };
  const detected = findStack(facts);
  const found = findGateStack(spec, jobType, detected);
  if ('reason' in found) return { kind: 'failed', reason: found.reason };
  const { stack } = found;
  const template = payload.job_image || findGateImage(spec, stack);
  // With one step its variables are everybody's.
  const env = mergeEnvs(facts, spec.steps.length === 1 ? spec.steps[0] : undefined);
  const own = [...stackEnv(stack), ['PLOY_SERVER_URL', facts.serverUrl] as const, ...repositoryEnv(payload)];
  return {
    kind: 'container',
    image: expandImage(template, stack, nodeEnv),
    command: [],
    env: Object.fromEntries(new Map([...env, ...own])),
    workingDir: containerDirs.workspace,
    stepIndex: jobType === 'pre_gate' ? 0 : Math.max(0, spec.steps.length - 1),
    ...{ files: [], needsTmp: false, mountDockerSocket: false, stack },
  };
}

/** The stack a gate works with: as the spec forces it, as it was detected, or as it is expected. */
function findGateStack(
  { gate, steps }: JobSpec,
  jobType: 'pre_gate' | 'post_gate',
  detected: Stack | undefined,
): { stack: Stack | undefined } | { reason: string } {
  const isPre = jobType === 'pre_gate';
  const config = isPre ? gate.pre : gate.post;
  if (config?.mode === 'forced') return { stack: config.stack };
  const expected = isPre ? steps[0]?.inbound : steps.at(-1)?.outbound;
  const strict = config?.mode === 'strict' ? config.stack : undefined;
  for (const wanted of [strict, expected]) {
    if (wanted === undefined || detected === undefined || isStackMatch(wanted, detected)) continue;
    return { reason: `the stack is ${renderStack(detected)}, expected is ${renderStack(wanted)}` };
  }
  return { stack: detected ?? config?.stack ?? expected };
}

/** The rule that says most: tool and release, tool, release, language. */
function findGateImage({ gate }: JobSpec, stack: Stack | undefined): string {
  const weigh = ({ tool, release }: Stack): number => (tool === '' ? 0 : 2) + (release === '' ? 0 : 1);
  const [best] = gate.images
    .filter((rule) => stack !== undefined && isStackMatch(rule.stack, stack))
    .sort((one, other) => weigh(other.stack) - weigh(one.stack));
  if (best !== undefined) return best.image;
  const about = stack === undefined ? 'an unknown stack' : `stack ${renderStack(stack)}`;
  throw new InputError(`cannot choose the gate's image: none is named for ${about}`);
}

function repositoryEnv({
  repo_url: url,
  base_ref: ref,
  commit_sha: sha = '',
}: ClaimPayload): [string, string][] {
  const pairs: [string, string][] = [
    ['PLOY_REPO_URL', url.trim()],
    ['PLOY_BASE_REF', ref.trim()],
    ['PLOY_COMMIT_SHA', sha],
  ];
  return pairs.filter(([, value]) => value !== '');
}
