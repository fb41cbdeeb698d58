// Requests and answers as a concern sees them, and which route a request is for. Pure.
import type { IncomingHttpHeaders } from 'node:http';

export type ApiRequest = {
  /** The whole body. Throws an ApiError for one that is too large or does not come to its end. */
  body(): Promise<Buffer>;
  /** Aborts when the caller has left, or its time is over, or we are being stopped; its reason says which. */
  signal: AbortSignal;
  /** What stands in the path for `:name`, decoded; never empty, and anything else at all: `..`, a slash, a NUL. */
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
  /** By name in lower case. */
  headers: IncomingHttpHeaders;
};

/** `json` as text; `bytes` as they are, under their type; a bare status has no body. */
export type Answer =
  | { status: number; json: object }
  | { status: number; bytes: Uint8Array; type: string }
  | { status: 204 };

export type Route = {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** `/v1/jobs/:id`: a part that begins with a colon stands for one part, whatever it is. */
  path: string;
  /** Needs no leave, where the server gives any. */
  isOpen?: true;
  handle(request: ApiRequest): Promise<Answer>;
};

/** An answer that is no success, in words for the caller. */
export class ApiError extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.headers = headers;
  }
}

export type FoundRoute = { route: Route; params: Readonly<Record<string, string>> };

/** Throws an ApiError: 400 for a path that cannot be decoded, 404, or 405 with what is allowed. */
export function findRoute(routes: readonly Route[], method: string, target: string): FoundRoute {
  const parts = splitTarget(target).path.split('/');
  const there = routes.flatMap((route) => {
    const params = matchPath(route.path.split('/'), parts);
    return params === undefined ? [] : [{ route, params }];
  });
  const found = there.find(({ route }) => route.method === method);
  if (found !== undefined) return found;
  if (there.length === 0) throw new ApiError(404, '404 page not found');
  throw new ApiError(405, 'method not allowed', { allow: there.map(({ route }) => route.method).join(', ') });
}

export function splitTarget(target: string): { path: string; query: string } {
  const mark = target.indexOf('?');
  return mark < 0
    ? { path: target, query: '' }
    : { path: target.slice(0, mark), query: target.slice(mark + 1) };
}

/** Split before it is decoded: an encoded slash belongs to its part. */
function matchPath(
  wanted: readonly string[],
  parts: readonly string[],
): Readonly<Record<string, string>> | undefined {
  if (wanted.length !== parts.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, name] of wanted.entries()) {
    const part = parts[index] ?? '';
    if (!name.startsWith(':')) {
      if (name !== part) return undefined;
    } else if (part === '') return undefined;
    else params[name.slice(1)] = part;
  }
  return Object.fromEntries(Object.entries(params).map(([name, part]) => [name, decodePart(part)]));
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new ApiError(400, 'the path has a part that cannot be decoded');
  }
}

/** The body as JSON. Throws an ApiError with 400. */
export async function readJsonBody(request: ApiRequest): Promise<unknown> {
  const body = await request.body();
  try {
    return JSON.parse(body.toString('utf8'));
  } catch (error) {
    throw new ApiError(400, `invalid request: ${error instanceof Error ? error.message : String(error)}`);
  }
}
