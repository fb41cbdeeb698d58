// The sections `actions` (deploy-runner's part, and its control side) and `hooks`.
import type { ActionsConfig, HooksConfig } from './config.ts';
import type { ActionsInput, HooksInput } from './schema.ts';
import { isWebUrl, type Section, type Surroundings, toMs } from './section.ts';

const defaultDeployTimeoutMs = 600_000;

/** The executor on the control side gives up after this long; the node must have reported before. */
const executorTimeoutMs = 900_000;

export function readActions(section: Section<ActionsInput>, { overrides }: Surroundings): ActionsConfig {
  const { value } = section;
  return {
    ...readNodeSide(section),
    ...(value.script === undefined ? {} : { script: value.script }),
    timeoutMs: readTimeout(section, overrides.DEPLOY_TIMEOUT_SECS),
    user: value.user ?? 'root',
    ...(value.root === undefined ? {} : { root: value.root }),
  };
}

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
  return { node, pull, push, checkout };
}

function readTimeout(section: Section<ActionsInput>, override: string | undefined): number {
  if (override !== undefined) {
    const seconds = /^\d{1,9}$/.test(override) ? Number(override) : 0;
    const problem = checkTimeout(seconds * 1000);
    if (problem !== undefined) section.reportOutside(`DEPLOY_TIMEOUT_SECS ${problem}, not "${override}"`);
    return seconds * 1000;
  }
  const timeoutMs = toMs(section.value.timeout) ?? defaultDeployTimeoutMs;
  const problem = checkTimeout(timeoutMs);
  if (problem !== undefined) section.report(['timeout'], `${problem}, not ${section.value.timeout}`);
  return timeoutMs;
}

function checkTimeout(timeoutMs: number): string | undefined {
  if (timeoutMs <= 0) return 'must be more than 0 seconds';
  if (timeoutMs < executorTimeoutMs) return undefined;
  return `must be less than the ${executorTimeoutMs / 1000} seconds after which the executor gives up`;
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
