// The S3 client and one call by it. What is given here is not looked for elsewhere: each default that the SDK has to find out
// is a file to read at every start. Credentials alone it finds by itself.
import { S3Client } from '@aws-sdk/client-s3';
import { answerLimit } from '../aws/answer-size.ts';
import { callCloud, dropRetryAfter } from '../aws/call.ts';
import { statusOf } from '../aws/failures.ts';
import { originNotes } from '../aws/origins.ts';
import type { CloudPlace } from '../aws/settings.ts';
import { ConfigError, type ReeveError, UnavailableError } from '../errors.ts';
import { findEndpoint } from './s3-endpoint.ts';
import { ForeignAnswer } from './s3-object.ts';

/** A bucket, and what all keys in it begin with: empty, or ending in a slash. */
export type Bucket = {
  name: string;
  prefix: string;
  place: CloudPlace;
  client: S3Client;
  limits: S3Limits;
  signal: AbortSignal | undefined;
};

export type S3Limits = {
  /** A document is small: what takes longer than this is not coming. */
  documentMs: number;
  /** One attempt for it, so that a connection that went dead is tried again within the deadline. */
  attemptMs: number;
  /** Streams last as long as they bring something. */
  idleMs: number;
};

export const defaultS3Limits: S3Limits = { documentMs: 10_000, attemptMs: 5_000, idleMs: 60_000 };

const connectMs = 5_000;
/** The slowest uplink that a document is given time for. */
const bytesPerMs = 250;
const maxAttempts = 4;

/** `documents` bounds each attempt, `streams` each silence. */
export function buildS3Client(
  { region, endpoint }: CloudPlace,
  { attemptMs, idleMs }: S3Limits,
  use: 'documents' | 'streams',
): S3Client {
  const limits =
    use === 'documents'
      ? { requestTimeout: attemptMs, throwOnRequestTimeout: true }
      : { socketTimeout: idleMs };
  const client = new S3Client({
    region,
    // A bucket's own host name is for AWS, whose certificates cover it.
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    maxAttempts,
    extensions: [...originNotes, answerLimit],
    retryMode: 'standard',
    logger: silent,
    requestHandler: { connectionTimeout: connectMs, ...limits, logger: silent },
    // Bodies are signed with their hash. The checksums beside it need a framing that not every service knows.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    defaultsMode: 'standard',
    useDualstackEndpoint: false,
    useFipsEndpoint: false,
    useArnRegion: false,
    disableMultiregionAccessPoints: true,
    disableS3ExpressSessionAuth: true,
    expectContinueHeader: false,
    authSchemePreference: [],
    sigv4aSigningRegionSet: [],
    userAgentAppId: 'reeve',
  });
  // What a service asks for may be longer than all the time there is for its tries: they would end before it is told why.
  client.middlewareStack.add(dropRetryAfter, { step: 'finalizeRequest', priority: 'low' });
  return client;
}

/** It would write to stderr: that callers wait for a connection, for one, which they are meant to. */
const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

export type Call = { verb: string; key: string; bodyBytes?: number };
export type CallOptions = { abortSignal?: AbortSignal; requestTimeout?: number };

/** One call with a deadline. Throws ConfigError for a bucket that is not there, else as `callCloud` does. */
export async function callS3<Answer>(
  bucket: Bucket,
  { verb, key, bodyBytes = 0 }: Call,
  send: (options: CallOptions) => Promise<Answer>,
): Promise<Answer> {
  const action = describeAction(bucket, verb, key);
  const extraMs = Math.ceil(bodyBytes / bytesPerMs);
  const { signal, limits } = bucket;
  const deadlineMs = limits.documentMs + extraMs;
  return await callCloud({ action, deadlineMs, signal }, async (abortSignal) => {
    try {
      return await send({ abortSignal, requestTimeout: limits.attemptMs + extraMs });
    } catch (error) {
      throw (await explainBucket(bucket, error, action)) ?? error;
    }
  });
}

/** Completes "cannot ...". */
export function describeAction({ name, prefix }: Bucket, verb: string, key: string): string {
  return `${verb} ${JSON.stringify(key)} in store "s3://${name}/${prefix}"`.replace(/\/"$/, '"');
}

/** What nobody has to try again before the configuration is another one, and what is no answer of S3's. */
export async function explainBucket(
  bucket: Bucket,
  error: unknown,
  action: string,
): Promise<ReeveError | undefined> {
  const { name, place } = bucket;
  if (!(error instanceof Error)) return undefined;
  if (error instanceof ForeignAnswer) {
    const { origin } = await findEndpoint(bucket);
    return new UnavailableError(`cannot ${action}: ${origin} ${error.message}: is it the right endpoint?`, {
      code: 'answer',
    });
  }
  if (error.name === 'NoSuchBucket') {
    const { isAws, origin } = await findEndpoint(bucket);
    const where = isAws ? place.region : origin;
    return new ConfigError(`cannot ${action}: there is no bucket "${name}" at ${where}`, {
      cause: error,
      code: 'no-bucket',
    });
  }
  const region = (error as { $response?: { headers?: Record<string, string> } }).$response?.headers?.[
    'x-amz-bucket-region'
  ];
  // A proxy sends elsewhere, too, and then the region is not what is wrong.
  const isSaid = region !== undefined || error.name === 'PermanentRedirect';
  if (!(statusOf(error) === 301 && isSaid) && error.name !== 'AuthorizationHeaderMalformed') return undefined;
  const cause = region === undefined ? 'is in another region' : `is in region ${region}`;
  return new ConfigError(`cannot ${action}: bucket "${name}" ${cause}: set cluster.region`, {
    cause: error,
    code: 'region',
  });
}
