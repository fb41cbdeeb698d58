// Calls to one engine: what counts as success, and every failure as an error with words.
// Knows nothing of containers and images.
import type { IncomingMessage } from 'node:http';
import { ConfigError, InputError, ReeveError, UnavailableError } from '../errors.ts';
import { EngineError, UnexpectedAnswer } from './errors.ts';
import { describeStatus, toUnavailable } from './failures.ts';
import { parseErrorMessage, parseMinimumVersion } from './parse.ts';
import { type Call, openTransport, type TransportOptions } from './transport.ts';
import { compareApiVersions, isApiVersion, newestApiVersion } from './versions.ts';

type Answer = { status: number; json: unknown; message: string };

export type Connection = {
  readonly apiVersion: string | undefined;
  readonly requestCount: number;
  /** The whole answer. Throws for every status that is neither success nor accepted. */
  ask(call: Call): Promise<Answer>;
  /** `ask`, then the answer's document through a parser; an answer of the wrong shape is UnavailableError. */
  read<T>(call: Call, parse: (json: unknown, status: number) => T): Promise<T>;
  /** The answer's bytes as they come, none while `onChunk` is busy. What it throws ends the call. */
  stream(call: Call, onChunk: (chunk: Uint8Array) => Promise<void> | void): Promise<void>;
  close(): void;
};

/** No answer that we ask for is near this; a stream without end must not fill the memory. */
const maxAnswerBytes = 64 * 1024 * 1024;

export function openConnection(options: TransportOptions): Connection {
  const { socket } = options;
  const transport = openTransport(options);

  const guarded = async <T>(call: Call, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw error instanceof ReeveError ? error : toUnavailable(error, call, socket);
    }
  };

  const connection: Connection = {
    get apiVersion() {
      return transport.apiVersion;
    },
    get requestCount() {
      return transport.requestCount;
    },
    ask: (call) =>
      guarded(call, async () => {
        const used = call.unversioned === true ? undefined : transport.apiVersion;
        const { status, theirs, text } = await transport.exchange(call, readAnswer);
        const answer = toAnswer(status, text, call);
        if (isWanted(status, call)) return answer;
        if (status === 400 && used !== undefined) await requireSpoken(connection, used, theirs, socket);
        throw refusal(answer, call);
      }),
    read: (call, parse) =>
      guarded(call, async () => {
        const answer = await connection.ask(call);
        return parse(answer.json, answer.status);
      }),
    stream: (call, onChunk) =>
      guarded(call, async () => {
        const refused = await transport.exchange(call, async (response, touch) => {
          if (!isWanted(response.statusCode ?? 0, call)) return await readAnswer(response, touch);
          await passChunks(response, touch, onChunk);
          return undefined;
        });
        if (refused !== undefined) throw refusal(toAnswer(refused.status, refused.text, call), call);
      }),
    close: () => transport.close(),
  };
  return connection;
}

/** After a refusal: an engine newer than all we know may have ceased to speak our version. Throws ConfigError then. */
async function requireSpoken(
  connection: Connection,
  used: string,
  theirs: string,
  socket: string,
): Promise<void> {
  if (compareApiVersions(theirs, newestApiVersion) <= 0) return;
  const action = 'read the version of the engine';
  const deadline = { kind: 'total', ms: 10_000 } as const;
  const call: Call = { action, method: 'GET', path: '/version', deadline, unversioned: true };
  const minimum = await connection.read(call, parseMinimumVersion);
  if (minimum === undefined || !isApiVersion(minimum) || compareApiVersions(minimum, used) <= 0) return;
  throw new ConfigError(
    `cannot use the engine at "${socket}": it needs API ${minimum} or newer, and this reeve speaks at most ${newestApiVersion}; update reeve`,
  );
}

async function passChunks(
  response: IncomingMessage,
  touch: () => void,
  onChunk: (chunk: Uint8Array) => Promise<void> | void,
): Promise<void> {
  for await (const chunk of response) {
    touch();
    const busy = onChunk(chunk);
    if (busy !== undefined) await busy;
  }
}

async function readAnswer(response: IncomingMessage, touch: () => void) {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response) {
    touch();
    size += chunk.length;
    if (size > maxAnswerBytes) throw new UnexpectedAnswer(`an answer over ${maxAnswerBytes} bytes`);
    chunks.push(chunk);
  }
  return {
    status: response.statusCode ?? 0,
    theirs: String(response.headers['api-version']),
    text: Buffer.concat(chunks).toString('utf8'),
  };
}

function isWanted(status: number, call: Call): boolean {
  return (status >= 200 && status < 300) || status === 304 || call.accept?.includes(status) === true;
}

/** Throws UnexpectedAnswer for what is no JSON: a status alone proves nothing about who answers. */
function toAnswer(status: number, text: string, call: Call): Answer {
  let json: unknown;
  try {
    json = text.trim() === '' ? undefined : JSON.parse(text);
  } catch {
    throw new UnexpectedAnswer(`status ${status} with something that is not JSON`);
  }
  const message = parseErrorMessage(json);
  if (status >= 400 && message === undefined)
    throw new UnexpectedAnswer(`status ${status} without a message`);
  return { status, json, message: describeStatus(status, message ?? '', call.secrets ?? []) };
}

function refusal(answer: Answer, call: Call): Error {
  const message = `cannot ${call.action}: ${answer.message}`;
  if (answer.status === 400) return new InputError(message);
  const temporary = answer.status === 502 || answer.status === 503 || answer.status === 504;
  // What it can never do, no waiting makes possible.
  if (answer.status === 501) return new EngineError(message, answer.status);
  // A question that fails inside the engine leaves us without the truth; a change that fails is that step's own error.
  if (temporary || (answer.status >= 500 && call.method === 'GET')) {
    return new UnavailableError(message, { code: 'engine' });
  }
  return new EngineError(message, answer.status);
}
