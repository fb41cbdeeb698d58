// `/v1/jobs`: commands of the control plane, taken, told about and deleted. Each runs in a process of its own, which this one
// may end long before.
import { parseJobRequest } from '../agenda/parse.ts';
import { errorTexts, paths } from '../agenda/wire.ts';
import { deleteCommand } from '../commands/delete.ts';
import { lookAtCommand } from '../commands/look.ts';
import { type OpenOptions, openCommand } from '../commands/open.ts';
import { commandKey } from '../commands/records.ts';
import { requireSection } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { UnavailableError } from '../errors.ts';
import { type Answer, ApiError, type ApiRequest, type Route, readJsonBody } from '../server/route.ts';
import type { Turns } from '../turns.ts';
import { createGate, type Gate } from './gate.ts';
import { createRoom } from './room.ts';

/** At once: each starts a program for the command's lock and one for its unit, and our own unit has so many tasks. */
const mostDeletes = 16;

export function jobsRoutes(ctx: Context, turns: Turns): Route[] {
  const admit = createRoom(ctx);
  const deletes = createGate(mostDeletes);
  return [
    { method: 'POST', path: paths.jobs, handle: (request) => handlePost(ctx, request, { turns, admit }) },
    { method: 'GET', path: paths.job, handle: (request) => handleGet(ctx, request) },
    {
      method: 'DELETE',
      path: paths.job,
      handle: (request) => handleDelete(ctx, request, { turns, deletes }),
    },
  ];
}

type PostOptions = { turns: Turns; admit: OpenOptions['admit'] };

async function handlePost(ctx: Context, request: ApiRequest, { turns, admit }: PostOptions): Promise<Answer> {
  const wanted = parseJobRequest(await readJsonBody(request));
  const { jobId } = wanted;
  const key = commandKey(jobId);
  const options = { admit, signal: request.signal };
  const opening = await turns(key, () => openCommand(ctx, wanted, options)).catch((error: unknown) => {
    if (!(error instanceof UnavailableError)) throw error;
    throw new ApiError(503, error.message, { 'retry-after': '5' });
  });
  // The command itself stays out of the journal: it may hold secrets.
  if (opening === 'opened') ctx.log.info('took a command', { job: jobId });
  return { status: 202, json: { job_id: jobId } };
}

/** Of a name in the path there is always one. */
function idOf({ params }: ApiRequest): string {
  return params['id'] ?? '';
}

async function handleGet(ctx: Context, request: ApiRequest): Promise<Answer> {
  const { liveOutput } = requireSection(ctx.config, 'commands');
  const answer = await lookAtCommand(ctx, idOf(request), liveOutput);
  if (answer === undefined) throw new ApiError(404, errorTexts.unknownJob);
  return { status: 200, json: answer };
}

type DeleteOptions = { turns: Turns; deletes: Gate };

async function handleDelete(
  ctx: Context,
  request: ApiRequest,
  { turns, deletes }: DeleteOptions,
): Promise<Answer> {
  const jobId = idOf(request);
  // Who waits for a turn keeps nobody else from deleting.
  const remove = () => deletes(request.signal, () => deleteCommand(ctx, jobId));
  const isDeleted = await turns(commandKey(jobId), remove);
  if (isDeleted) ctx.log.info('deleted a command', { job: jobId });
  return { status: 204 };
}
