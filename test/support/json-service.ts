// A small strict service of AWS on a free port of the loopback, in the JSON protocol: it refuses what AWS would refuse, fails
// as it is told to, and keeps what it was asked.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type JsonService = {
  readonly endpoint: string;
  /** What was asked and answered with success or a refusal of the service's own, oldest first. */
  readonly calls: JsonCall[];
  /** Requests of all kinds. */
  readonly requests: { count: number; atOnce: number };
  /** What happens to the next requests instead of an answer. */
  readonly faults: Fault[];
  /** How long each answer takes, in milliseconds. */
  delayMs: number;
  stop(): Promise<void>;
};

export type JsonCall = { operation: string; input: Readonly<Record<string, unknown>> };

export type Fault =
  | { kind: 'refuse'; status: number; type: string; message: string }
  /** The connection is reset before an answer. */
  | { kind: 'reset' }
  /** Half the true answer, then silence. */
  | { kind: 'stall' }
  /** A byte of the true answer each second. */
  | { kind: 'trickle' }
  /** The first half of the true answer as if it were all of it. */
  | { kind: 'cut' }
  /** Success, with something else in it. */
  | { kind: 'answer'; body: unknown };

/** Thrown by an operation: refused in the service's own words. */
export class Refusal extends Error {
  readonly type: string;
  readonly status: number;

  constructor(type: string, message: string, status = 400) {
    super(message);
    this.type = type;
    this.status = status;
  }
}

export type JsonServiceOptions = {
  /** Of the signature's scope: `ssm`. */
  service: string;
  /** Before the operation in X-Amz-Target. */
  target: string;
  region: string;
  operations: Readonly<Record<string, (input: Readonly<Record<string, unknown>>) => unknown>>;
};

export async function startJsonService(options: JsonServiceOptions): Promise<JsonService> {
  const server = createServer();
  const faults: Fault[] = [];
  const calls: JsonCall[] = [];
  const requests = { count: 0, atOnce: 0 };
  let running = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const service: JsonService = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ...{ calls, requests, faults, delayMs: 0 },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    requests.count += 1;
    running += 1;
    requests.atOnce = Math.max(requests.atOnce, running);
    try {
      const body = await readBody(request);
      const answer = answerCall(options, request, body, calls);
      await new Promise((resolve) => setTimeout(resolve, service.delayMs));
      send(response, answer, faults.shift());
    } finally {
      running -= 1;
    }
  };
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    serve(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  return service;
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

type Answer = { status: number; body: unknown };

function answerCall(
  options: JsonServiceOptions,
  request: IncomingMessage,
  body: string,
  calls: JsonCall[],
): Answer {
  try {
    checkSignature(options, request);
    const operation = findOperation(options, request);
    const input: unknown = JSON.parse(body);
    if (typeof input !== 'object' || input === null) throw new Refusal('SerializationException', 'no object');
    const known = input as Readonly<Record<string, unknown>>;
    calls.push({ operation, input: known });
    return { status: 200, body: options.operations[operation]?.(known) };
  } catch (error) {
    const { type, status, message } =
      error instanceof Refusal ? error : new Refusal('SerializationException', String(error));
    return { status, body: { __type: type, message } };
  }
}

function findOperation(
  { target, operations }: JsonServiceOptions,
  { method, url, headers }: IncomingMessage,
) {
  if (method !== 'POST' || url !== '/') throw new Refusal('UnknownOperationException', `${method} ${url}`);
  if (headers['content-type'] !== 'application/x-amz-json-1.1') {
    throw new Refusal('UnknownOperationException', `content type ${headers['content-type']}`);
  }
  const [prefix, operation = ''] = String(headers['x-amz-target']).split('.');
  if (prefix !== target || operations[operation] === undefined) {
    throw new Refusal('UnknownOperationException', `target ${headers['x-amz-target']}`);
  }
  return operation;
}

/** Its form, scope and age; what it was made with is the SDK's business. */
function checkSignature({ service, region }: JsonServiceOptions, { headers }: IncomingMessage): void {
  const { authorization, 'x-amz-date': date } = headers;
  if (authorization === undefined) {
    throw new Refusal('MissingAuthenticationTokenException', 'Missing Authentication Token');
  }
  const scope = new RegExp(
    `^AWS4-HMAC-SHA256 Credential=\\w+/\\d{8}/${region}/${service}/aws4_request, SignedHeaders=[a-z0-9;-]+, Signature=[0-9a-f]{64}$`,
  );
  const signedAt = Date.parse(
    String(date).replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'),
  );
  if (!scope.test(authorization) || Number.isNaN(signedAt)) {
    throw new Refusal('IncompleteSignatureException', 'the signature is not as it should be');
  }
  if (Math.abs(Date.now() - signedAt) > 5 * 60_000) {
    throw new Refusal('InvalidSignatureException', `Signature expired: ${date} is now earlier than now`);
  }
}

function send(response: ServerResponse, answer: Answer, fault: Fault | undefined): void {
  response.setHeader('content-type', 'application/x-amz-json-1.1');
  const text = JSON.stringify(answer.body);
  const half = text.slice(0, text.length / 2);
  switch (fault?.kind) {
    case undefined:
      response.writeHead(answer.status).end(text);
      return;
    case 'refuse':
      response.writeHead(fault.status).end(JSON.stringify({ __type: fault.type, message: fault.message }));
      return;
    case 'reset':
      response.socket?.resetAndDestroy();
      return;
    case 'stall':
      response.writeHead(answer.status, { 'content-length': text.length }).write(half);
      return;
    case 'trickle':
      response.writeHead(answer.status, { 'content-length': text.length });
      trickle(response, text);
      return;
    case 'cut':
      response.writeHead(answer.status).end(half);
      return;
    case 'answer':
      response.end(JSON.stringify(fault.body));
      return;
  }
}

function trickle(response: ServerResponse, text: string): void {
  let sent = 0;
  const timer = setInterval(() => {
    response.write(text.slice(sent, sent + 1));
    sent += 1;
  }, 1000);
  response.once('close', () => clearInterval(timer));
}

/** Throws for a field that the operation does not have, as AWS does for a value of the wrong type. */
export function requireFields(
  input: Readonly<Record<string, unknown>>,
  fields: Readonly<Record<string, (value: unknown) => boolean>>,
): void {
  for (const [name, value] of Object.entries(input)) {
    if (fields[name]?.(value) !== true) throw new Refusal('SerializationException', `field ${name}`);
  }
}
