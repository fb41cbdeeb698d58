// The requests to ploy's server: who we are in each of them, how long each may take, and an answer that is no success as an
// error with its status. The files that say who we are are read at the first request, not before the bootstrap.
import type { JobsConfig } from '../config/config.ts';
import type { BaseContext } from '../context.ts';
import { ConfigError, describeError, UnavailableError } from '../errors.ts';
import { readErrorText } from '../http/answer.ts';
import { type HttpAnswer, type HttpClient, type HttpRequest, openHttp } from '../http/client.ts';
import { endpoints } from '../ploy/endpoints.ts';
import { limits } from '../ploy/limits.ts';
import { nodeHeader } from '../ploy/names.ts';
import {
  type ControlPlane,
  ControlPlaneError,
  type LogChunk,
  UnreadableClaimError,
} from './control-plane.ts';
import { type Credentials, readCredentials, readStamp } from './credentials.ts';
import { toStorable } from './storable.ts';

export type ControlPlaneContext = Pick<BaseContext, 'overrides' | 'log' | 'clock' | 'signal'>;

/** A claim carries a specification; the server takes none larger than this. */
const claimBytes = 16 * 1024 * 1024;

type Ask = HttpRequest & { action: string };

export function openControlPlane(ctx: ControlPlaneContext, jobs: JobsConfig): ControlPlane {
  const line = openLine(ctx, jobs);
  const { nodeId } = jobs;
  const post = async (
    action: string,
    path: string,
    body: unknown,
    how: Partial<Ask> = {},
  ): Promise<HttpAnswer> => await line.ask({ action, path, body, method: 'POST', ...how });
  return {
    prepare: () => line.prepare(),
    claim: async () => {
      const how = { timeoutMs: limits.claimMs, maxAnswerBytes: claimBytes };
      const answer = await post('claim a job', endpoints.claim(nodeId), undefined, how);
      return answer.status === 204 ? undefined : parseClaim(answer);
    },
    fetchJobStatus: (jobId) => fetchJobStatus(line, jobId),
    complete: async (jobId, body) => {
      const path = endpoints.complete(jobId);
      await post(`complete job ${jobId}`, path, body, { timeoutMs: limits.completeMs, signal: null });
    },
    uploadLogs: async ({ runId, jobId, chunkNo, gzip }: LogChunk) => {
      const body = { run_id: runId, job_id: jobId, chunk_no: chunkNo, data: toBase64(gzip) };
      await post(`upload log chunk ${chunkNo} of job ${jobId}`, endpoints.logs(nodeId), body, {
        timeoutMs: limits.logsMs,
      });
    },
    sendEvents: async (runId, events) => {
      await post(
        `send events of run ${runId}`,
        endpoints.events(nodeId),
        toStorable({ run_id: runId, events }),
        { timeoutMs: limits.logsMs },
      );
    },
    uploadDiff: async ({ runId, jobId, gzip, summary }) => {
      const body = { patch: toBase64(gzip), summary };
      await post(`upload the diff of job ${jobId}`, endpoints.diff(runId, jobId), body);
    },
    uploadArtifact: async ({ runId, jobId, tarGz, name }) => {
      const body = { bundle: toBase64(tarGz), name };
      await post(`upload artifacts of job ${jobId}`, endpoints.artifact(runId, jobId), body);
    },
    ...jobCalls(post),
    fetchSnapshot: (runId) =>
      line.askForStream(`fetch the snapshot of run ${runId}`, endpoints.snapshot(runId)),
    fetchSpecBundle: (bundleId) =>
      line.askForStream(`fetch bundle ${bundleId}`, endpoints.specBundle(bundleId)),
    sendHeartbeat: async (body, timeoutMs) => {
      await post('send the heartbeat', endpoints.heartbeat(nodeId), body, { timeoutMs });
    },
    sendDiagnostics: async (body) => {
      const how = { timeoutMs: jobs.heartbeat.timeoutMs };
      await post('send diagnostics', endpoints.diagnostics(nodeId), toStorable(body), how);
    },
    close: () => line.close(),
  };
}

type Post = (action: string, path: string, body: unknown, how?: Partial<Ask>) => Promise<HttpAnswer>;

function jobCalls(post: Post): Pick<ControlPlane, 'saveImage' | 'saveSbom'> {
  return {
    saveImage: async (jobId, image) => {
      const path = endpoints.image(jobId);
      await post(`tell the image of job ${jobId}`, path, { image }, { timeoutMs: limits.logsMs });
    },
    saveSbom: async (jobId, packages) => {
      await post(`tell the packages of job ${jobId}`, endpoints.sbom(jobId), toStorable({ packages }));
    },
  };
}

type Line = {
  prepare(): void;
  ask(ask: Ask): Promise<HttpAnswer>;
  askForStream(action: string, path: string): ReturnType<ControlPlane['fetchSnapshot']>;
  close(): void;
};

async function fetchJobStatus(line: Line, jobId: string): Promise<string> {
  const action = `ask for the status of job ${jobId}`;
  const path = endpoints.jobStatus(jobId);
  const answer = await line.ask({ action, path, method: 'GET', timeoutMs: limits.statusMs });
  const { status } = (parseJson(action, answer) ?? {}) as { status?: unknown };
  if (typeof status === 'string' && status.trim() !== '') return status.trim();
  throw new ControlPlaneError(`cannot ${action}: the answer has none`, { status: answer.status });
}

type Opened = { http: HttpClient; token: string; stamp: string };

/**
 * The client in use. After a renewal the server may no longer know what an old one says, or what an old one trusts: then it is
 * opened anew. A request is sent again only where it was refused; where no answer came, whoever asked knows what to do.
 */
function openLine(ctx: ControlPlaneContext, jobs: JobsConfig): Line {
  let opened: Promise<Opened> | undefined;
  /** What is under way on them still gets its answer. */
  const retired: HttpClient[] = [];
  const open = (): Promise<Opened> => {
    opened ??= readCredentials(ctx, jobs)
      .then((credentials) => connect(ctx, jobs, credentials))
      .catch((error: unknown) => {
        opened = undefined;
        throw error;
      });
    return opened;
  };
  const reopenIfRenewed = async (old: Opened): Promise<Opened | undefined> => {
    if ((await readStamp(ctx, jobs)) === old.stamp) return undefined;
    const credentials = await readCredentials(ctx, jobs).catch(() => undefined);
    const current = await opened?.catch(() => undefined);
    // Another request has done it meanwhile.
    if (current !== undefined && current !== old) return current;
    if (credentials === undefined) return undefined;
    retired.push(old.http);
    const renewed = connect(ctx, jobs, credentials);
    opened = Promise.resolve(renewed);
    return renewed;
  };
  const exchange = async <A extends { status: number }>(
    action: string,
    send: (http: HttpClient) => Promise<A>,
  ): Promise<{ answer: A; token: string }> => {
    const first = await open();
    const answer = await tell(action, () => send(first.http)).catch(async (error: unknown) => {
      await reopenIfRenewed(first);
      throw error;
    });
    const second = answer.status === 401 ? await reopenIfRenewed(first) : undefined;
    if (second === undefined) return { answer, token: first.token };
    return { answer: await tell(action, () => send(second.http)), token: second.token };
  };
  return {
    prepare: () => void open().catch(() => {}),
    ask: async ({ action, ...request }) => {
      const { answer, token } = await exchange(action, (http) => http.send(request));
      requireSuccess(action, answer, token);
      return answer;
    },
    askForStream: async (action, path) => {
      const request = { method: 'GET' as const, path, timeoutMs: limits.requestMs };
      const { answer, token } = await exchange(action, (http) => http.stream(request));
      if ('stream' in answer) return answer.stream;
      throw refusal(action, answer, token);
    },
    close: () => {
      const last = opened;
      opened = undefined;
      for (const http of retired.splice(0)) http.close();
      last?.then(({ http }) => http.close()).catch(() => {});
    },
  };
}

function connect(ctx: ControlPlaneContext, jobs: JobsConfig, credentials: Credentials): Opened {
  const { token, secureContext, trusted, stamp } = credentials;
  const http = openHttp({
    baseUrl: jobs.serverUrl,
    headers: { authorization: `Bearer ${token}`, [nodeHeader]: jobs.nodeId },
    trusted,
    signal: ctx.signal,
    ...(secureContext === undefined ? {} : { secureContext }),
  });
  return { http, token, stamp };
}

async function tell<T>(action: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ConfigError || !(error instanceof UnavailableError)) throw error;
    throw new ControlPlaneError(`cannot ${action}: ${describeError(error)}`, { cause: error });
  }
}

function requireSuccess(action: string, answer: HttpAnswer, token: string): void {
  if (answer.status < 200 || answer.status > 299) throw refusal(action, answer, token);
}

/** A server that repeats the token in its answer does not make us tell it. */
function refusal(action: string, { status, body }: HttpAnswer, token: string): ControlPlaneError {
  const answer = readErrorText(body, token);
  const words = answer === '' ? '' : `: ${answer}`;
  return new ControlPlaneError(`cannot ${action}: the server answered ${status}${words}`, { status, answer });
}

function parseClaim(answer: HttpAnswer): unknown {
  try {
    return parseJson('claim a job', answer);
  } catch (error) {
    throw new UnreadableClaimError(answer.body.toString('utf8'), error);
  }
}

function parseJson(action: string, { status, body }: HttpAnswer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch (error) {
    throw new ControlPlaneError(`cannot ${action}: the answer is no JSON`, { status, cause: error });
  }
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}
