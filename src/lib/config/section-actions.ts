// The sections `actions` (deploy-runner's part, and its control side) and `hooks`.
import { canNameActions } from '../deploy-runner/names.ts';
import { longestTimeoutMs, usualResultMs } from '../deploy-runner/times.ts';
import type { ActionsConfig, HooksConfig } from './config.ts';
import type { ActionsInput, HooksInput } from './schema.ts';
import { isWebUrl, type Section, type Surroundings, toMs } from './section.ts';

const defaultDeployTimeoutMs = 600_000;
const defaultVerifyTimeoutMs = 120_000;

const longestExecutorMs = 24 * 60 * 60_000;

export function readActions(section: Section<ActionsInput>, { overrides }: Surroundings): ActionsConfig {
  const { value } = section;
  const resultTimeoutMs = readResultTimeout(section, overrides.REDEPLOY_TIMEOUT_SECS);
  const timeoutMs = readTimeout(section, overrides.DEPLOY_TIMEOUT_SECS, resultTimeoutMs);
  return {
    ...readNodeSide(section),
    ...(value.script === undefined ? {} : { script: value.script }),
    config: value.config ?? '/opt/homelab/config',
    timeoutMs,
    verifyTimeoutMs: readVerifyTimeout(section, timeoutMs),
    user: value.user ?? 'root',
    ...(value.root === undefined ? {} : { root: value.root }),
    ...(resultTimeoutMs === undefined ? {} : { resultTimeoutMs }),
  };
}

const nodeRule =
  'must fit into an id, redeploy-NODE-SERVICE: lower-case letters, digits and "-", 53 characters at most';

const nodeSideKeys = ['node', 'pull', 'push', 'checkout'] as const;

/** All of it, or nothing where the machine has only the control side. */
function readNodeSide({
  value,
  report,
}: Section<ActionsInput>): Record<(typeof nodeSideKeys)[number], string> {
  const missing = nodeSideKeys.filter((key) => value[key] === undefined);
  const isControlOnly = value.root !== undefined && missing.length === nodeSideKeys.length;
  if (!isControlOnly) for (const key of missing) report([key], 'is missing');
  const { node = '', pull = '', push = '', checkout = '' } = value;
  // Nothing would ever be approved for it, nor answered by it.
  if (node !== '' && !canNameActions(node)) report(['node'], `${nodeRule}, not ${JSON.stringify(node)}`);
  return { node, pull, push, checkout };
}

/** Undefined where it is what it always is. */
function readResultTimeout(section: Section<ActionsInput>, override: string | undefined): number | undefined {
  if (override === undefined) return undefined;
  const timeoutMs = toWholeSeconds(override) * 1000;
  if (timeoutMs > 0 && timeoutMs <= longestExecutorMs) return timeoutMs;
  section.reportOutside(`REDEPLOY_TIMEOUT_SECS must be 1 to ${longestExecutorMs / 1000}, not "${override}"`);
  return undefined;
}

/** 0 for what is no number of seconds. */
function toWholeSeconds(text: string): number {
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}

function readTimeout(
  section: Section<ActionsInput>,
  override: string | undefined,
  resultTimeoutMs: number | undefined,
): number {
  // A control host performs none, and may wait as long as it likes.
  const check =
    section.value.node === undefined ? checkAny : (ms: number) => checkTimeout(ms, resultTimeoutMs);
  if (override !== undefined) {
    const seconds = toWholeSeconds(override);
    const problem = check(seconds * 1000);
    if (problem !== undefined) section.reportOutside(`DEPLOY_TIMEOUT_SECS ${problem}, not "${override}"`);
    return seconds * 1000;
  }
  const timeoutMs = toMs(section.value.timeout) ?? defaultDeployTimeoutMs;
  const problem = check(timeoutMs);
  if (problem !== undefined) section.report(['timeout'], `${problem}, not ${section.value.timeout ?? '10m'}`);
  return timeoutMs;
}

/** Both sides have to agree on it, and this machine knows its own only. */
function checkTimeout(timeoutMs: number, resultMs = usualResultMs): string | undefined {
  const problem = checkAny(timeoutMs);
  if (problem !== undefined) return problem;
  const longestMs = longestTimeoutMs(resultMs);
  if (timeoutMs <= longestMs) return undefined;
  const seconds = resultMs / 1000;
  if (longestMs <= 0) return `has no time at all: the control side gives up after ${seconds} seconds`;
  return `must be at most ${longestMs / 1000} seconds, as the control side gives up after ${seconds}`;
}

function checkAny(timeoutMs: number): string | undefined {
  return timeoutMs > 0 ? undefined : 'must be more than 0 seconds';
}

/** As long as the deploy itself, and nobody would hear why: it is ended before it says so. */
function readVerifyTimeout({ value, report }: Section<ActionsInput>, timeoutMs: number): number {
  const verifyTimeoutMs = toMs(value.verify_timeout);
  if (verifyTimeoutMs === undefined) return defaultVerifyTimeoutMs;
  const said = (rule: string) => report(['verify_timeout'], `${rule}, not ${value.verify_timeout}`);
  if (verifyTimeoutMs < 1000) said('must be 1s at least');
  else if (verifyTimeoutMs >= timeoutMs) {
    said(`must be less than the ${timeoutMs / 1000} seconds that the whole deploy has`);
  }
  return verifyTimeoutMs;
}

/** A hook that its unit cuts off leaves no word of it, and would be called again at each failure. */
const longestHookMs = 4 * 60_000;

export function readHooks(section: Section<HooksInput>): HooksConfig {
  const { failure } = section.value;
  if (failure === undefined) return {};
  const { command, url, timeout } = failure;
  if (command === undefined && url === undefined) section.report(['failure'], 'needs a command or a url');
  if (url !== undefined && !isWebUrl(url)) section.report(['failure', 'url'], 'must be a whole URL');
  if (command?.[0]?.startsWith('/') === false) {
    section.report(['failure', 'command', 0], 'must be the absolute path of a program');
  }
  const timeoutMs = toMs(timeout) ?? 10_000;
  if (timeoutMs === 0) section.report(['failure', 'timeout'], 'must be longer than 0s');
  if (timeoutMs > longestHookMs) {
    section.report(['failure', 'timeout'], 'must be 4m at most: reeve-failed@.service is ended after 5m');
  }
  return {
    failure: {
      ...(command === undefined ? {} : { command }),
      ...(url === undefined ? {} : { url }),
      timeoutMs,
    },
  };
}
