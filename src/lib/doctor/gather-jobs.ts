// Looks at what jobs need: the token and the certificate as they would be used, the server, programs, and what is open.
import { access, constants, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { JobsConfig } from '../config/config.ts';
import { childEnvironment } from '../config/environment.ts';
import { type Credentials, readCredentials, tokenPath } from '../control-plane/credentials.ts';
import { describeError } from '../errors.ts';
import { openHttp } from '../http/client.ts';
import { listOpenJobs, readJob } from '../jobs/book.ts';
import { openJobsDir } from '../jobs/records.ts';
import { nodeHeader } from '../ploy/names.ts';
import { silentLog } from '../report/log.ts';
import type { JobsFacts } from './judge-jobs.ts';
import type { World } from './world.ts';

/** What workspaces, artifacts and certificates are made with; tar itself calls gzip. */
const programs = ['git', 'tar', 'gzip', 'openssl'] as const;
const answerMs = 4_000;

export async function gatherJobs({ base, signal }: World, jobs: JobsConfig): Promise<JobsFacts> {
  const ctx = { ...base, log: silentLog };
  const tokenFile = tokenPath(ctx);
  const tokenMode = await stat(tokenFile).then(
    ({ mode }) => mode & 0o7777,
    () => undefined,
  );
  const identity = await readCredentials(ctx, jobs).then(
    (credentials) => ({ credentials, problem: undefined }),
    (error: unknown) => ({ credentials: undefined, problem: describeError(error) }),
  );
  const [server, missing, open] = await Promise.all([
    askServer(jobs, identity.credentials, signal),
    listMissing(),
    listOpen(ctx),
  ]);
  return {
    ...{ serverUrl: jobs.serverUrl, tokenFile, tokenMode, server, open },
    identityProblem: identity.problem,
    missingPrograms: missing,
  };
}

/** A job that there cannot be: any answer says that the server is there, and whether it knows us. */
async function askServer(
  jobs: JobsConfig,
  credentials: Credentials | undefined,
  signal: AbortSignal,
): Promise<JobsFacts['server']> {
  const { secureContext, token, trusted } = credentials ?? {};
  const http = openHttp({
    baseUrl: jobs.serverUrl,
    signal,
    headers: {
      [nodeHeader]: jobs.nodeId,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    ...(trusted === undefined ? {} : { trusted }),
    ...(secureContext === undefined ? {} : { secureContext }),
  });
  try {
    const request = { method: 'GET' as const, path: '/v1/jobs/reeve-doctor/status', timeoutMs: answerMs };
    const { status, headers } = await http.send(request);
    const date = new Date(headers.date ?? '');
    return {
      reachable: true,
      // Without a token of ours a refusal says nothing new.
      status: token === undefined ? 0 : status,
      dateHeader: Number.isNaN(date.getTime()) ? undefined : date,
    };
  } catch (error) {
    return { reachable: false, why: describeError(error) };
  } finally {
    http.close();
  }
}

async function listMissing(): Promise<string[]> {
  const directories = (childEnvironment()['PATH'] ?? '').split(':');
  const found = await Promise.all(
    programs.map(async (program) => {
      const tries = directories.map((directory) => access(join(directory, program), constants.X_OK));
      return await Promise.any(tries).then(
        () => true,
        () => false,
      );
    }),
  );
  return programs.filter((_, index) => found[index] !== true);
}

async function listOpen(
  ctx: Pick<World['base'], 'paths' | 'clock' | 'log'>,
): Promise<JobsFacts['open'][number][]> {
  const keys = await listOpenJobs(ctx);
  return await Promise.all(
    keys.map(async (key) => {
      const place = { key, directory: join(openJobsDir(ctx.paths), key), isOpen: true };
      // What is wrong with one hides nothing of the others.
      const read = await readJob(ctx, place, false).catch((error: unknown) => describeError(error));
      if (typeof read === 'string') return { key, claimedAt: undefined, hasCompletion: false, trouble: read };
      const { claim, completion } = read;
      const lastError = completion?.lastError;
      return {
        key,
        claimedAt: claim?.claimedAt,
        hasCompletion: completion !== undefined && completion.settled === undefined,
        ...(lastError === undefined ? {} : { lastError }),
      };
    }),
  );
}
