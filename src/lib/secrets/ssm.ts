// Secrets from the parameter store of AWS Systems Manager: asked for by tens, once for as long as this source lives, and kept
// in its memory only. Messages name parameters, never values.
import { GetParametersCommand, type GetParametersResult, SSMClient } from '@aws-sdk/client-ssm';
import { buildClientSettings, callCloud } from '../aws/call.ts';
import type { CloudPlace } from '../aws/settings.ts';
import { readShape } from '../aws/shape.ts';
import { describeError, InputError, ReeveError, StepError, UnavailableError } from '../errors.ts';
import type { SecretRef, SecretSource } from './secrets.ts';

/** What one call of GetParameters takes. */
const namesPerCall = 10;
/** The service allows 40 calls a second for a whole account: many nodes may start at once. */
const callsAtOnce = 3;
const deadlineMs = 20_000;
const action = 'read parameters';

export type SsmOptions = { clusterId: string; place: CloudPlace; signal?: AbortSignal | undefined };

type Fault = {
  why: string;
  /** Trying again may help. */
  passing: boolean;
};
type Found = { value: string } | Fault;

export function openSsmSecrets({ clusterId, place, signal }: SsmOptions): SecretSource {
  const known = new Map<string, Promise<Found>>();
  const fetchNames = openParameters(place, signal);

  /** What is not known yet goes into calls together; a fault is not kept, as the next try may find it mended. */
  const ask = (names: readonly string[]): void => {
    for (let from = 0; from < names.length; from += namesPerCall) {
      const batch = names.slice(from, from + namesPerCall);
      const answer = fetchNames(batch);
      for (const name of batch) {
        const found = answer.then((all) => all.get(name) ?? lost);
        known.set(name, found);
        void found.then((one) => 'value' in one || known.delete(name));
      }
    }
  };

  return {
    resolve: async (refs) => {
      const allowed = refs.filter(({ ssm }) => isAllowed(ssm, clusterId)).map(({ ssm }) => ssm);
      ask([...new Set(allowed)].filter((name) => !known.has(name)));
      const answers = refs.map(async (ref): Promise<[SecretRef, Found]> => {
        return [ref, (await known.get(ref.ssm)) ?? refusal(clusterId)];
      });
      return toValues(await Promise.all(answers));
    },
  };
}

const lost: Fault = { why: 'is not in the answer', passing: true };

/**
 * Below the cluster's own prefix: all that its nodes' role may read. One name that the service refuses would spoil the call
 * for the nine beside it.
 */
export function isAllowed(name: string, clusterId: string): boolean {
  const [path = '', selector, ...rest] = name.split(':');
  const prefix = prefixOf(clusterId);
  if (rest.length > 0 || !path.startsWith(prefix)) return false;
  if (selector !== undefined && !/^[A-Za-z0-9_.-]{1,100}$/.test(selector)) return false;
  const parts = path.slice(1).split('/');
  return path.length <= 1011 && parts.length <= 15 && parts.every((part) => /^[A-Za-z0-9_.-]+$/.test(part));
}

function prefixOf(clusterId: string): string {
  return `/launch-pad/${clusterId}/`;
}

function refusal(clusterId: string): Fault {
  return { why: `has a name that is not below ${prefixOf(clusterId)}`, passing: false };
}

type FetchNames = (names: readonly string[]) => Promise<ReadonlyMap<string, Found>>;

/** Never throws: what goes wrong is a fault of the names it concerns. */
function openParameters(place: CloudPlace, signal: AbortSignal | undefined): FetchNames {
  const takeTurn = limitTo(callsAtOnce);
  const client = new SSMClient(buildClientSettings(place));
  const send = async (names: readonly string[]): Promise<GetParametersResult> => {
    const call = { action, deadlineMs, signal };
    const command = new GetParametersCommand({ Names: [...names], WithDecryption: true });
    return await callCloud(call, (abortSignal) => client.send(command, { abortSignal }));
  };
  const fetchNames: FetchNames = async (names) => {
    try {
      const answer = await takeTurn(() => send(names));
      return readShape(action, () => readAnswer(answer, place));
    } catch (error) {
      if (names.length === 1 || !isRefusal(error))
        return new Map(names.map((name) => [name, toFault(error)]));
      // One that may not be read, or whose key may not be used, has spoilt the call: each is asked for by itself.
      const parts = await Promise.all(names.map((name) => fetchNames([name])));
      return new Map(parts.flatMap((part) => [...part]));
    }
  };
  return fetchNames;
}

function readAnswer(answer: GetParametersResult, { region }: CloudPlace): Map<string, Found> {
  const found = new Map<string, Found>();
  for (const { Name = '', Selector = '', Value } of answer.Parameters ?? []) {
    found.set(`${Name}${Selector}`, readValue(Value));
  }
  for (const name of answer.InvalidParameters ?? []) {
    found.set(name, { why: `is missing: there is no parameter ${name} in ${region}`, passing: false });
  }
  return found;
}

function readValue(value: string | undefined): Found {
  if (value === undefined) return lost;
  if (!value.includes('\0')) return { value };
  return { why: 'has a NUL, which no environment can carry', passing: false };
}

function isRefusal(error: unknown): boolean {
  return error instanceof InputError || (error instanceof ReeveError && error.code === 'denied');
}

function toFault(error: unknown): Fault {
  const cause = describeError(error).replace(/^cannot read parameters: /, '');
  return { why: `cannot be read: ${cause}`, passing: error instanceof UnavailableError };
}

function toValues(answers: readonly [SecretRef, Found][]): Record<string, string> {
  const values: [string, string][] = [];
  const faults = new Map<string, string[]>();
  let passing = false;
  for (const [{ name, ssm }, found] of answers) {
    if ('value' in found) {
      values.push([name, found.value]);
      continue;
    }
    passing ||= found.passing;
    faults.set(found.why, [...(faults.get(found.why) ?? []), `${name} (${JSON.stringify(ssm)})`]);
  }
  if (faults.size === 0) return Object.fromEntries(values);
  const text = [...faults].map(([why, names]) => `${names.join(', ')} ${why}`).join('; ');
  const message = `cannot resolve secrets: ${text}`;
  throw passing
    ? new UnavailableError(message, { code: 'secrets' })
    : new StepError(message, { code: 'secrets' });
}

/** Runs what it is given, so many at a time, in the order of the asking. */
function limitTo(limit: number) {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async <Value>(run: () => Promise<Value>): Promise<Value> => {
    if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await run();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
