// Tokens for the private registries of AWS by the machine's own role, good for twelve hours and used for six. A run ends with
// its tick, so that they are kept in a file below the run directory: in memory as /run is, gone at boot, for root alone.
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { ECRClient, GetAuthorizationTokenCommand } from '@aws-sdk/client-ecr';
import { buildClientSettings, callCloud } from '../aws/call.ts';
import { readShape } from '../aws/shape.ts';
import { UnavailableError } from '../errors.ts';
import { writeFileAtomic } from '../state/atomic-file.ts';
import { isRecord } from '../state/shape.ts';
import { isLoginToken } from './credentials.ts';

export type EcrToken = {
  /** base64 of `AWS:password`. */
  token: string;
  obtainedAt: string;
  expiresAt: string;
};

export type TokenRequest = {
  region: string;
  /** Where tokens are kept. */
  file: string;
  now: Date;
  signal?: AbortSignal | undefined;
};

const freshMs = 6 * 60 * 60_000;
/** A pull may take a while, and clocks differ. */
const marginMs = 10 * 60_000;
const deadlineMs = 20_000;

/** A token so young is not refused for its age. */
const youngMs = 5 * 60_000;

/**
 * Throws UnavailableError. One that is old but still good stands in where there is no new one to be had. `renewable`: another
 * one may be taken where this one is not.
 */
export async function obtainToken(request: TokenRequest): Promise<EcrToken & { renewable: boolean }> {
  const { now } = request;
  const kept = (await readTokens(request.file))[request.region];
  if (kept !== undefined && isGood(kept, now) && ageOf(kept, now) < freshMs) {
    return { ...kept, renewable: ageOf(kept, now) >= youngMs };
  }
  try {
    return { ...(await renewToken(request)), renewable: false };
  } catch (error) {
    if (kept === undefined || !isGood(kept, now)) throw error;
    return { ...kept, renewable: true };
  }
}

/** A new one, whatever is kept. Pulls that begin at once ask for one together. */
export function renewToken(request: TokenRequest): Promise<EcrToken> {
  const name = `${request.file} ${request.region}`;
  const known = underWay.get(name);
  if (known !== undefined) return known;
  const renewal = fetchAndKeep(request).finally(() => underWay.delete(name));
  underWay.set(name, renewal);
  return renewal;
}

const underWay = new Map<string, Promise<EcrToken>>();

async function fetchAndKeep(request: TokenRequest): Promise<EcrToken> {
  const token = await fetchToken(request);
  const tokens = { ...(await readTokens(request.file)), [request.region]: token };
  await writeFileAtomic(request.file, `${JSON.stringify({ version: 1, tokens })}\n`).catch(() => {
    // It serves this run all the same, and the next one asks again.
  });
  return token;
}

/** A clock that went back makes the age negative: nobody knows then how old it is. */
function ageOf({ obtainedAt }: EcrToken, now: Date): number {
  const ageMs = now.getTime() - Date.parse(obtainedAt);
  return ageMs >= 0 ? ageMs : Number.POSITIVE_INFINITY;
}

function isGood({ expiresAt }: EcrToken, now: Date): boolean {
  return Date.parse(expiresAt) - marginMs > now.getTime();
}

async function fetchToken({ region, now, signal }: TokenRequest): Promise<EcrToken> {
  // Without an endpoint of the configuration, which is the store's: a registry's name says where it is.
  const client = new ECRClient(buildClientSettings({ region }));
  const call = { action: `get a token for the registries of ${region}`, deadlineMs, signal };
  try {
    const answer = await callCloud(call, (abortSignal) =>
      client.send(new GetAuthorizationTokenCommand({}), { abortSignal }),
    );
    // What is no login is not kept: it would be in the way of the next try.
    const { authorizationToken: token, expiresAt } = answer.authorizationData?.[0] ?? {};
    if (!isLoginToken(token)) {
      throw new UnavailableError(`cannot ${call.action}: the answer has none`, { code: 'answer' });
    }
    const end = expiresAt ?? new Date(now.getTime() + freshMs);
    return readShape(call.action, () => ({
      token,
      obtainedAt: now.toISOString(),
      expiresAt: end.toISOString(),
    }));
  } finally {
    client.destroy();
  }
}

/** None where the file is not as this version writes it: a token can always be had anew. */
async function readTokens(path: string): Promise<Readonly<Record<string, EcrToken>>> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const raw: unknown = JSON.parse(await file.readFile('utf8'));
    const tokens = isRecord(raw) && raw['version'] === 1 && isRecord(raw['tokens']) ? raw['tokens'] : {};
    return Object.fromEntries(
      Object.entries(tokens).filter((entry): entry is [string, EcrToken] => isToken(entry[1])),
    );
  } catch {
    return {};
  } finally {
    await file?.close();
  }
}

function isToken(raw: unknown): raw is EcrToken {
  if (!isRecord(raw) || !isLoginToken(raw['token'])) return false;
  return ['obtainedAt', 'expiresAt'].every((key) => typeof raw[key] === 'string');
}
