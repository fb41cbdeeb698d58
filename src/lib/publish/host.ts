// The host sample that goes with a status: the heartbeat's while it is fresh, else one that costs no waiting.
import type { HostSample, NodeStatus } from '../cluster/wire.ts';
import { staleWindowMs } from '../config/rules.ts';
import type { BaseContext } from '../context.ts';
import { describeError } from '../errors.ts';
import type { CpuTimes } from '../host/parse.ts';
import { readHost, sampleSince } from '../host/sample.ts';

/** Counters are those that the sample ended with. */
export type StatusHost = { host?: HostSample; cpu?: CpuTimes };

/** Never throws: a status without a sample is better than none. */
export async function chooseHost(
  ctx: Pick<BaseContext, 'clock' | 'log'>,
  last: { body: NodeStatus; cpu?: CpuTimes } | undefined,
): Promise<StatusHost> {
  const now = ctx.clock.now();
  const known = last?.cpu === undefined ? {} : { cpu: last.cpu };
  const host = last?.body.host ?? undefined;
  if (host !== undefined && isFresh(host, now)) return { host, ...known };
  try {
    return sampleSince(last?.cpu, await readHost(now));
  } catch (error) {
    ctx.log.debug(describeError(error));
    return known;
  }
}

export function withHost(status: NodeStatus, host: HostSample | undefined): NodeStatus {
  const { host: _, ...rest } = status;
  return host === undefined ? rest : { ...rest, host };
}

function isFresh(host: HostSample, now: Date): boolean {
  const ageMs = now.getTime() - Date.parse(host.sampledAt);
  return ageMs >= 0 && ageMs < staleWindowMs;
}
