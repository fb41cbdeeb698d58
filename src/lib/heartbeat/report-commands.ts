// One heartbeat to the control plane that hands out commands: that we are here, and which version we are. It is never fatal: what
// goes wrong is told and noted, nothing else fails for it, and the next one comes at its time.
import { heartbeatPath, tokenHeader } from '../agenda/wire.ts';
import type { CommandsConfig } from '../config/config.ts';
import type { Context } from '../context.ts';
import { describeError, UnavailableError } from '../errors.ts';
import { readErrorText } from '../http/answer.ts';
import { type HttpAnswer, openHttp } from '../http/client.ts';
import type { Outcome } from '../outcome.ts';
import { version } from '../version.ts';
import { noteBeats, readBeatsTo } from './beats.ts';
import { isBeatDue, planNextBeat } from './plan-beat.ts';

const plane = 'commands';

/** From the first byte to the last of the answer, as in the original. */
const answerMs = 10_000;

/** `deferred` where the control plane is not told: the next one tells it. */
export async function reportToCommands(ctx: Context, commands: CommandsConfig): Promise<Outcome> {
  const { centralBaseUrl, heartbeatIntervalMs: intervalMs, machineId } = commands;
  if (centralBaseUrl === '') {
    return { outcome: 'nothing-to-do', text: ['commands.central_base_url is empty: nobody is told'] };
  }
  const { origin } = new URL(centralBaseUrl);
  const before = await readBeatsTo(ctx, plane, origin);
  const now = ctx.clock.now();
  // Whatever goes wrong, it is not asked more often nor less.
  const timing = { now, intervalMs, backoff: { firstMs: intervalMs, capMs: intervalMs, jitter: 0 } };
  if (!isBeatDue(before, timing)) {
    return { outcome: 'nothing-to-do', text: [`the next heartbeat of commands is due at ${before?.nextAt}`] };
  }
  const told = await send(ctx, commands);
  // Interrupted, it says nothing about the control plane.
  if (told !== 'told' && ctx.signal.aborted) throw new UnavailableError(told.problem);
  const next = planNextBeat(before, told === 'told' ? 'ok' : 'other', { ...timing, random: 0 });
  const lastOkAt = told === 'told' ? now.toISOString() : before?.lastOkAt;
  await noteBeats(ctx, plane, {
    ...next,
    origin,
    ...(lastOkAt === undefined ? {} : { lastOkAt }),
    ...(told === 'told' ? {} : { lastError: told.problem }),
  });
  if (told === 'told') {
    return {
      outcome: 'done',
      text: [`machine ${machineId} is told to ${origin}`],
      data: { commands: { machineId, version } },
    };
  }
  ctx.log.warning(told.problem);
  return {
    outcome: 'deferred',
    text: [`machine ${machineId} is not told to ${origin}: the next heartbeat is due at ${next.nextAt}`],
    data: { commands: { machineId, version, error: told.problem } },
  };
}

async function send(
  ctx: Context,
  { centralBaseUrl, machineId, token }: CommandsConfig,
): Promise<'told' | { problem: string }> {
  const http = openHttp({
    baseUrl: centralBaseUrl,
    headers: { [tokenHeader]: token },
    signal: ctx.signal,
  });
  try {
    const path = heartbeatPath(machineId);
    const answer = await http.send({ method: 'POST', path, body: { version }, timeoutMs: answerMs });
    if (answer.status >= 200 && answer.status <= 299) return 'told';
    return { problem: `cannot send the heartbeat of commands: ${describeRefusal(answer, token)}` };
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    return { problem: `cannot send the heartbeat of commands: ${describeError(error)}` };
  } finally {
    http.close();
  }
}

function describeRefusal({ status, body }: HttpAnswer, token: string): string {
  const words = readErrorText(body, token);
  return `the control plane answered ${status}${words === '' ? '' : `: ${words}`}`;
}
