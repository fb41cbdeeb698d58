// One request and its answer: the body up to its cap, the signal of a caller that waits, the words of a refusal.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { BaseContext } from '../context.ts';
import { describeError, InputError, ReeveError } from '../errors.ts';
import { type BodyRoom, readBody, type TakenRoom } from './body.ts';
import { type Answer, ApiError, findRoute, type Route, splitTarget } from './route.ts';

export type Authorize = (headers: IncomingHttpHeaders) => void;

/** The body of a refusal, as JSON. */
export type RenderError = (message: string) => object;

export type ExchangeOptions = {
  routes: readonly Route[];
  /** Of one body. */
  bodyBytes: number;
  /** For all bodies that are held at one time. */
  room: BodyRoom;
  /** From the end of the headers to the end of the answer. */
  writeMs: number;
  /** Throws an ApiError where a caller has no leave for what is not open. Undefined: everything is open. */
  authorize?: Authorize | undefined;
  /** How a refusal is worded; by default its words as plain text. */
  renderError?: RenderError | undefined;
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
    const isOurEnd = options.stopping.aborted && error === options.stopping.reason;
    const refusal = isOurEnd ? new ApiError(503, 'the node is being stopped') : toApiError(error, log);
    refuse({ req, res }, refusal, options);
  }
  await gone;
  taken.giveBack();
  clearTimeout(late);
  clearTimeout(lastWord);
}

async function answer(
  req: IncomingMessage,
  res: ServerResponse,
  options: ExchangeOptions & { signal: AbortSignal; taken: TakenRoom },
): Promise<void> {
  const { routes, bodyBytes, signal, stopping, taken, authorize } = options;
  const target = req.url ?? '';
  const { route, params } = findRoute(routes, req.method ?? '', target);
  const { headers } = req;
  if (route.isOpen !== true) authorize?.(headers);
  const query = new URLSearchParams(splitTarget(target).query);
  const body = () => readBody(req, bodyBytes, taken);
  const given = await route.handle({ signal, params, query, headers, body });
  if (res.headersSent || res.destroyed) return;
  send({ req, res }, { ...renderAnswer(given), isLast: stopping.aborted });
}

type Content = { status: number; content: string | Uint8Array; type: string | undefined };

function renderAnswer(answer: Answer): Content {
  const { status } = answer;
  if ('json' in answer) return { status, content: JSON.stringify(answer.json), type: 'application/json' };
  if ('bytes' in answer) return { status, content: answer.bytes, type: answer.type };
  return { status, content: '', type: undefined };
}

function refuse(
  { req, res }: { req: IncomingMessage; res: ServerResponse },
  { status, message, headers }: ApiError,
  { stopping, renderError }: Pick<ExchangeOptions, 'stopping' | 'renderError'>,
): void {
  if (res.headersSent || res.destroyed) return;
  const isLast = stopping.aborted || !req.complete || status === 408;
  const words =
    renderError === undefined
      ? { content: `${message}\n`, type: 'text/plain; charset=utf-8' }
      : { content: JSON.stringify(renderError(message)), type: 'application/json' };
  send({ req, res }, { status, ...words, isLast, headers });
}

function send(
  { req, res }: { req: IncomingMessage; res: ServerResponse },
  about: Content & { isLast: boolean; headers?: Readonly<Record<string, string>> },
): void {
  res.writeHead(about.status, {
    ...(about.type === undefined
      ? {}
      : { 'content-type': about.type, 'content-length': Buffer.byteLength(about.content) }),
    'x-content-type-options': 'nosniff',
    ...about.headers,
    ...(about.isLast ? { connection: 'close' } : {}),
  });
  if (req.complete || !about.isLast) {
    res.end(about.content);
    return;
  }
  // Closed with a body on its way, the answer would be lost with it: the caller has a second to read, and we read no more.
  req.pause();
  res.write(about.content);
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
