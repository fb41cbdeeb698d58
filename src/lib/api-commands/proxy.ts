// `/v1/proxy`: an instance's port, in force at the next request once it is answered.

import { parseProxyRequest } from '../agenda/queries.ts';
import type { ProxyAnswer } from '../agenda/wire.ts';
import type { Context } from '../context.ts';
import { BusyError, UnavailableError } from '../errors.ts';
import { registerInstance } from '../proxy/set.ts';
import { type Answer, ApiError, type ApiRequest, readJsonBody } from '../server/route.ts';

/** A lock that is held for moments. */
const waitMs = 5_000;

/** Throws InputError for an instance or a port that there cannot be, ApiError with 503 where asking again is worth it. */
export async function handleRegister(ctx: Context, request: ApiRequest): Promise<Answer> {
  const { instance = '' } = request.params;
  const port = parseProxyRequest(await readJsonBody(request));
  const { was } = await registerInstance(ctx, instance, port, { waitMs }).catch((error: unknown) => {
    const isPassing = error instanceof BusyError || error instanceof UnavailableError;
    throw isPassing ? new ApiError(503, error.message, { 'retry-after': '1' }) : error;
  });
  if (was !== port) ctx.log.info('registered an instance', { instance, port });
  const answer: ProxyAnswer = { instance, port };
  return { status: 200, json: answer };
}
