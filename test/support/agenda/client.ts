// agenda's control plane as it calls a node, and as strict as it may be: every answer has the status that its route can have, is
// JSON of exactly the fields that stand in the wire's description, each of its type, and nothing else.
import { type Agent, type RequestOptions, request } from 'node:http';

export type RawAnswer = {
  status: number;
  text: string;
  headers: Readonly<Record<string, string | string[] | undefined>>;
};

export type RawCall = {
  method?: string;
  path: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Buffer;
  agent?: Agent;
  signal?: AbortSignal;
};

/** One request as it stands. Rejects where there is no answer. */
export async function callRaw(port: number, call: RawCall): Promise<RawAnswer> {
  const { method = 'GET', path, headers = {}, body, agent = false, signal } = call;
  const about: RequestOptions = { host: '127.0.0.1', port, method, path, headers, agent };
  return await new Promise((resolve, reject) => {
    const outgoing = request({ ...about, ...(signal === undefined ? {} : { signal }) }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('error', reject);
      response.once('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          text: Buffer.concat(chunks).toString(),
          headers: response.headers,
        }),
      );
    });
    outgoing.once('error', reject);
    outgoing.end(body);
  });
}

export type JobView = {
  status: 'running' | 'success' | 'failed';
  exit_code: number;
  output: string;
  error?: string;
};

export type Refusal = { status: number; error: string };

export type AgendaClient = {
  health(): Promise<{ version: string; uptime_sec: number }>;
  /** The id, or how it was refused. */
  dispatch(body: unknown): Promise<string | Refusal>;
  look(id: string): Promise<JobView | Refusal>;
  delete(id: string): Promise<Refusal | undefined>;
  /** Until it has ended, as often as the control plane may ask. */
  wait(id: string): Promise<JobView>;
};

/** `isLive`: the node was told to tell what runs has printed. */
export type ClientOptions = { port: number; token: string | undefined; agent?: Agent; isLive?: boolean };

export function createAgendaClient({ port, token, agent, isLive = false }: ClientOptions): AgendaClient {
  const call = async (method: string, path: string, body?: unknown): Promise<RawAnswer> =>
    await callRaw(port, {
      method,
      path,
      ...(agent === undefined ? {} : { agent }),
      headers: {
        ...(token === undefined ? {} : { 'X-Agenda-Node-Token': token }),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
  const jobPath = (id: string): string => `/v1/jobs/${encodeURIComponent(id)}`;

  const client: AgendaClient = {
    health: async () => {
      const answer = await call('GET', '/v1/health');
      const { version, uptime_sec } = readObject(answer, 200, ['version', 'uptime_sec']);
      require(typeof version === 'string' && /^\d+\.\d+\.\d+$/.test(version), answer, 'version');
      require(Number.isInteger(uptime_sec), answer, 'uptime_sec');
      return { version: version as string, uptime_sec: uptime_sec as number };
    },
    dispatch: async (body) => {
      const answer = await call('POST', '/v1/jobs', body);
      if (answer.status !== 202) return readRefusal(answer, [400, 401, 413, 503]);
      const { job_id: id } = readObject(answer, 202, ['job_id']);
      require(typeof id === 'string', answer, 'job_id');
      return id as string;
    },
    look: async (id) => {
      const answer = await call('GET', jobPath(id));
      return answer.status === 200 ? readJob(answer, isLive) : readRefusal(answer, [401, 404]);
    },
    delete: async (id) => {
      const answer = await call('DELETE', jobPath(id));
      if (answer.status !== 204) return readRefusal(answer, [401]);
      require(answer.text === '' && answer.headers['content-type'] === undefined, answer, 'body');
      return undefined;
    },
    wait: async (id) => {
      for (let left = 1_200; left > 0; left -= 1) {
        const view = await client.look(id);
        if ('output' in view && view.status !== 'running') return view;
        if (!('output' in view)) throw new Error(`job ${id} is lost: ${JSON.stringify(view)}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      throw new Error(`job ${id} does not end`);
    },
  };
  return client;
}

function readJob(answer: RawAnswer, isLive: boolean): JobView {
  const view = readObject(answer, 200, ['status', 'exit_code', 'output', 'error']);
  const { status, exit_code: code, output, error } = view;
  require(status === 'running' || status === 'success' || status === 'failed', answer, 'status');
  require(Number.isInteger(code), answer, 'exit_code');
  require(typeof output === 'string', answer, 'output');
  require(status === 'failed'
    ? typeof error === 'string' && error !== ''
    : error === undefined, answer, 'error');
  // While it runs there is nothing to tell yet.
  require(status !== 'running' || (code === 0 && (isLive || output === '')), answer, 'running');
  require(status !== 'success' || code === 0, answer, 'success');
  require(status !== 'failed' || code !== 0, answer, 'failed');
  return view as JobView;
}

function readRefusal(answer: RawAnswer, statuses: readonly number[]): Refusal {
  require(statuses.includes(answer.status), answer, 'status');
  const { error } = readObject(answer, answer.status, ['error']);
  require(typeof error === 'string' && error !== '', answer, 'error');
  return { status: answer.status, error: error as string };
}

/** With none but the fields named. */
function readObject(
  answer: RawAnswer,
  status: number,
  fields: readonly string[],
): Readonly<Record<string, unknown>> {
  require(answer.status === status, answer, 'status');
  require(answer.headers['content-type'] === 'application/json', answer, 'content-type');
  const value = JSON.parse(answer.text) as Record<string, unknown>;
  require(typeof value === 'object' && value !== null && !Array.isArray(value), answer, 'no object');
  const unknown = Object.keys(value).filter((name) => !fields.includes(name));
  require(unknown.length === 0, answer, `unknown fields ${unknown.join(', ')}`);
  return value;
}

function require(isRight: boolean, answer: RawAnswer, what: string): void {
  if (!isRight)
    throw new Error(`the node breaks the wire (${what}): ${answer.status} ${answer.text.slice(0, 300)}`);
}
