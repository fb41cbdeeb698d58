// Changes servers of the running HAProxy, all in one go: one that cannot be changed keeps no other from it.
import { StepError } from '../errors.ts';
import { askRuntime } from '../haproxy/runtime.ts';
import { serverOptions } from './balancer-file.ts';
import { balancerService } from './balancer-path.ts';
import type { ServerStep, ServerTarget } from './plan-balancer.ts';

export type ServerResult = { done: ServerStep[]; failures: StepError[] };

export async function applyServerSteps(
  socket: string,
  steps: readonly ServerStep[],
  { signal }: { signal: AbortSignal },
): Promise<ServerResult> {
  const result: ServerResult = { done: [], failures: [] };
  if (steps.length === 0) return result;
  const commands = steps.map(buildCommands);
  const answers = await askRuntime(socket, commands.flat(), { signal, service: balancerService });
  for (const [index, step] of steps.entries()) {
    const told = answers.splice(0, commands[index]?.length).find((answer) => !isGood(answer));
    if (told === undefined) result.done.push(step);
    else if (!isStillUsed(step, told)) result.failures.push(failure(step, told));
  }
  return result;
}

const goodAnswers = new Set(['', 'New server registered.', 'Server deleted.']);

/** An address that is set is answered by what has changed and what has not. */
function isGood(answer: string): boolean {
  return goodAnswers.has(answer) || /^(no need to change the addr|IP changed from )/.test(answer);
}

/** A request has come between the look and the deletion. It takes nothing new by now, and goes at a later look. */
function isStillUsed({ action }: ServerStep, answer: string): boolean {
  return action === 'delete' && answer.startsWith('Server still has connections');
}

function failure({ action, subject }: ServerStep, answer: string): StepError {
  return new StepError(`cannot ${action} ${subject} in HAProxy: ${answer.split('\n')[0]}`);
}

function buildCommands({ action, target }: ServerStep): string[] {
  const name = `${target.backend}/${target.server}`;
  switch (action) {
    case 'add':
      // A new server is in maintenance, and its checks are off.
      return [
        `add server ${name} ${target.dial} ${serverOptions}`,
        `enable health ${name}`,
        `enable server ${name}`,
      ];
    case 'ready':
      // What was found while nobody served there does not count: it would be left out until the next check.
      return [
        ...restore(target),
        `enable health ${name}`,
        `set server ${name} state ready`,
        `set server ${name} health up`,
      ];
    case 'drain':
      return [`set server ${name} state drain`];
    case 'delete':
      return [`set server ${name} state maint`, `del server ${name}`];
  }
}

/** What it was made with, which a person may have changed. One that is not named for its place is not ours. */
function restore({ backend, server }: ServerTarget): string[] {
  const [, host, port] = /^(.+):(\d+)$/.exec(server) ?? [];
  const name = `${backend}/${server}`;
  if (port === undefined) return [];
  return [`set server ${name} addr ${host} port ${port}`, `set server ${name} weight 100%`];
}
