// Requests and answers as a concern sees them, and which route a request is for. Pure.

export type ApiRequest = {
  /** The whole body. Throws an ApiError for one that is too large or does not come to its end. */
  body(): Promise<Buffer>;
  /** Aborts when the caller has left, or its time is over, or we are being stopped; its reason says which. */
  signal: AbortSignal;
};

export type Answer = { status: number; json: object };

export type Route = {
  method: 'GET' | 'POST';
  path: string;
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

/** Exact paths only. Throws an ApiError: 404, or 405 with what is allowed. */
export function findRoute(routes: readonly Route[], method: string, target: string): Route {
  const path = target.split('?', 1)[0];
  const there = routes.filter((route) => route.path === path);
  const route = there.find((one) => one.method === method);
  if (route !== undefined) return route;
  if (there.length === 0) throw new ApiError(404, '404 page not found');
  throw new ApiError(405, 'method not allowed', { allow: there.map((one) => one.method).join(', ') });
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
