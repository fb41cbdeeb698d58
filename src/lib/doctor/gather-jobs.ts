// Looks at what jobs need: the token and the certificate as they would be used, the server, programs, and what is open.
import { access, constants, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readBootstrapTrust } from '../bootstrap/exchange.ts';
import { bootstrapToken, exists, hasCertificate } from '../bootstrap/presence.ts';
import type { JobsConfig } from '../config/config.ts';
import { childEnvironment } from '../config/environment.ts';
import {
  type Credentials,
  type CredentialsContext,
  readCertificate,
  readCredentials,
  tokenPath,
} from '../control-plane/credentials.ts';
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
  const identity = await readIdentity(ctx, jobs);
  const [server, missing, open] = await Promise.all([
    askServer(jobs, identity, signal),
    listMissing(),
    listOpen(ctx),
  ]);
  return {
    ...{ serverUrl: jobs.serverUrl, tokenFile, tokenMode, server, open },
    certificate: identity.certificate,
    bootstrapToken: { file: bootstrapToken(ctx), isThere: await exists(bootstrapToken(ctx)) },
    identityProblem: identity.problem,
    missingPrograms: missing,
  };
}

type Identity = {
  credentials: Partial<Credentials> | undefined;
  problem: string | undefined;
  certificate: JobsFacts['certificate'];
};

/** Before there is a certificate nothing but the exchange of a token is allowed, so that the server is not asked. */
async function readIdentity(ctx: CredentialsContext, jobs: JobsConfig): Promise<Identity> {
  const { enabled, certPath = '', keyPath = '' } = jobs.http.tls;
  const isIssued = enabled && (await hasCertificate(jobs));
  const certificate = enabled ? { isIssued, files: [certPath, keyPath] } : undefined;
  const none = { credentials: undefined, certificate };
  if (enabled && !isIssued) return { ...none, problem: await failureOf(readBootstrapTrust(jobs)) };
  try {
    return { ...none, credentials: await readCredentials(ctx, jobs), problem: undefined };
  } catch (error) {
    // Whether the server is there can be asked without a token.
    const credentials = await readCertificate(ctx, jobs).catch(() => undefined);
    return { ...none, credentials, problem: describeError(error) };
  }
}

async function failureOf(work: Promise<unknown>): Promise<string | undefined> {
  return await work.then(() => undefined, describeError);
}

/** A job that there cannot be: any answer says that the server is there, and whether it knows us. */
async function askServer(
  jobs: JobsConfig,
  { credentials }: Identity,
  signal: AbortSignal,
): Promise<JobsFacts['server']> {
  if (credentials === undefined) return undefined;
  const { secureContext, token, trusted } = credentials;
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
