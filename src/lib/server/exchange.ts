// One request and its answer: the body up to its cap, the signal of a caller that waits, the words of a refusal.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BaseContext } from '../context.ts';
import { describeError, InputError, ReeveError } from '../errors.ts';
import { type BodyRoom, readBody, type TakenRoom } from './body.ts';
import { type Answer, ApiError, type ApiRequest, findRoute, type Route } from './route.ts';

export type ExchangeOptions = {
  routes: readonly Route[];
  /** Of one body. */
  bodyBytes: number;
  /** For all bodies that are held at one time. */
  room: BodyRoom;
  /** From the end of the headers to the end of the answer. */
  writeMs: number;
  /** Being stopped: answers are the last of their connection. */
  stopping: AbortSignal;
};

/** What a caller that does not read has after its time for an answer that could not be told. */
const lastWordMs = 1_000;

/** Resolves when nothing of the exchange is left. Never throws. */
export async function exchange(
  { log }: Pick<BaseContext, 'log'>,
  { req, res }: { req: IncomingMessage; res: ServerResponse },
  options: ExchangeOptions,
): Promise<void> {
  const left = new AbortController();
  const gone = new Promise<void>((resolve) => res.once('close', resolve));
  void gone.then(() => left.abort(new ApiError(408, 'the caller has left')));
  const taken = options.room.open();
  let lastWord: NodeJS.Timeout | undefined;
  const late = setTimeout(() => {
    left.abort(new ApiError(408, `no answer within ${options.writeMs / 1000}s`));
    lastWord = setTimeout(() => req.socket.destroy(), lastWordMs);
  }, options.writeMs);
  try {
    const signal = AbortSignal.any([left.signal, options.stopping]);
    await answer(req, res, { ...options, signal, taken });
  } catch (error) {
    refuse({ req, res }, toApiError(error, log), options.stopping);
  }
  await gone;
  taken.giveBack();
  clearTimeout(late);
  clearTimeout(lastWord);
}

async function answer(
  req: IncomingMessage,
  res: ServerResponse,
  { routes, bodyBytes, signal, stopping, taken }: ExchangeOptions & { signal: AbortSignal; taken: TakenRoom },
): Promise<void> {
  const route = findRoute(routes, req.method ?? '', req.url ?? '');
  const request: ApiRequest = { signal, body: () => readBody(req, bodyBytes, taken) };
  const { status, json }: Answer = await route.handle(request);
  if (res.headersSent || res.destroyed) return;
  const text = JSON.stringify(json);
  send({ req, res }, { status, text, type: 'application/json', isLast: stopping.aborted });
}

function refuse(
  { req, res }: { req: IncomingMessage; res: ServerResponse },
  { status, message, headers }: ApiError,
  stopping: AbortSignal,
): void {
  if (res.headersSent || res.destroyed) return;
  const isLast = stopping.aborted || !req.complete || status === 408;
  send({ req, res }, { status, text: `${message}\n`, type: 'text/plain; charset=utf-8', isLast, headers });
}

function send(
  { req, res }: { req: IncomingMessage; res: ServerResponse },
  about: {
    status: number;
    text: string;
    type: string;
    isLast: boolean;
    headers?: Readonly<Record<string, string>>;
  },
): void {
  res.writeHead(about.status, {
    'content-type': about.type,
    'content-length': Buffer.byteLength(about.text),
    'x-content-type-options': 'nosniff',
    ...about.headers,
    ...(about.isLast ? { connection: 'close' } : {}),
  });
  if (req.complete || !about.isLast) {
    res.end(about.text);
    return;
  }
  // Closed with a body on its way, the answer would be lost with it: the caller has a second to read, and we read no more.
  req.pause();
  res.write(about.text);
  const timer = setTimeout(() => req.socket.destroy(), lastWordMs);
  req.socket.once('close', () => clearTimeout(timer));
}

/** What is not the caller's doing is told in the journal as well. */
function toApiError(error: unknown, log: Pick<BaseContext, 'log'>['log']): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof InputError) return new ApiError(400, error.message);
  log.error(
    error instanceof ReeveError || !(error instanceof Error) ? describeError(error) : `${error.stack}`,
  );
  return new ApiError(500, error instanceof ReeveError ? error.message : 'internal error');
}
