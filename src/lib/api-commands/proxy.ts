// `/v1/proxy`: an instance's port, in force at the next request once it is answered.

import { parseProxyRequest } from '../agenda/queries.ts';
import type { ProxyAnswer } from '../agenda/wire.ts';
import type { Context } from '../context.ts';
import { BusyError, UnavailableError } from '../errors.ts';
import { untold } from '../proxy/registry.ts';
import { registerInstance } from '../proxy/set.ts';
import { type Answer, ApiError, type ApiRequest, readJsonBody } from '../server/route.ts';

/** A lock that is held for moments. */
const waitMs = 5_000;

/**
 * Throws InputError for an instance or a port that there cannot be, ApiError with 503 where nothing was
 * registered and asking again is worth it; whatever else keeps HAProxy from it is a 500, with the instance registered.
 */
export async function handleRegister(ctx: Context, request: ApiRequest): Promise<Answer> {
  const { instance = '' } = request.params;
  const port = parseProxyRequest(await readJsonBody(request));
  const { was } = await registerInstance(ctx, instance, port, { waitMs }).catch((error: unknown) => {
    const isUnavailable = error instanceof UnavailableError && error.code !== untold;
    const isPassing = error instanceof BusyError || isUnavailable;
    throw isPassing ? new ApiError(503, error.message, { 'retry-after': '1' }) : error;
  });
  if (was !== port) ctx.log.info('registered an instance', { instance, port });
  const answer: ProxyAnswer = { instance, port };
  return { status: 200, json: answer };
}
