// Whether a service keeps to writes on condition. One that does not know the headers may refuse them, which is honest, or pass
// them over, which loses other people's writes: so one that is not AWS has to show it once a process for each of the two. It is
// shown with the document itself and with what it has already: whoever may write it needs no other right, no list shows anything
// else, and nothing has to be removed after.
import {
  DeleteObjectCommand,
  GetObjectCommand,
  PutObjectCommand,
  type PutObjectCommandInput,
} from '@aws-sdk/client-s3';
import { statusOf } from '../aws/failures.ts';
import { ConfigError, UnavailableError } from '../errors.ts';
import { confirmAbsence } from './s3-absence.ts';
import { readBody, readWhole } from './s3-body.ts';
import { type Bucket, type CallOptions, callS3, describeAction } from './s3-client.ts';
import { findEndpoint } from './s3-endpoint.ts';
import { contentTypeOf, requireEtag } from './s3-object.ts';
import { PreconditionError } from './store.ts';

export type ConditionHeaders = { IfMatch: string } | { IfNoneMatch: '*' };
export type ConditionalWrite = { key: string; body: Uint8Array; headers: ConditionHeaders };

type Fault = 'does not know' | 'passes over';
type Verdict = 'keeps' | Fault;
type Perform = () => Promise<string>;
type Proof = {
  bucket: Bucket;
  write: ConditionalWrite;
  perform: Perform;
  settle: (verdict: Verdict) => void;
};

/** No object has it. */
const wrongEtag = '"00000000000000000000000000000000"';

/** Lets a write through to a service that keeps to its condition. Throws ConfigError for another one. */
export function createGuard(bucket: Bucket): (write: ConditionalWrite, perform: Perform) => Promise<string> {
  const verdicts = new Map<string, Verdict>();
  const firsts = new Map<string, Promise<unknown>>();
  return async (write, perform) => {
    const header = headerOf(write);
    if (!verdicts.has(header)) {
      // It has both since 2024.
      if (await isAws(bucket, write)) verdicts.set(header, 'keeps');
      const first = firsts.get(header);
      if (first !== undefined) await first;
    }
    const verdict = verdicts.get(header);
    if (verdict === 'keeps') return await perform();
    if (verdict !== undefined) throw await refuse(bucket, write, verdict);
    // What a lost connection has left open, each of those who have waited finds out for itself.
    const proven = prove({ bucket, write, perform, settle: (settled) => verdicts.set(header, settled) });
    firsts.set(
      header,
      proven.catch(() => undefined),
    );
    return await proven;
  };
}

async function isAws(bucket: Bucket, { key }: ConditionalWrite): Promise<boolean> {
  return (await callS3(bucket, { verb: 'write', key }, () => findEndpoint(bucket))).isAws;
}

async function prove(proof: Proof): Promise<string> {
  const { bucket, write, perform, settle } = proof;
  const current = await fetchCurrent(bucket, write);
  if (current === 'hidden' || current === undefined) return await proveByOwn(proof, current === undefined);
  // Where it is passed over, the document is written as it is.
  const verdict = await writeUnmet(bucket, write, current);
  settle(verdict);
  if (verdict !== 'keeps') throw await refuse(bucket, write, verdict);
  return await perform();
}

/** Nothing is there that could be in the way: so it is written first, and then is. */
async function proveByOwn({ bucket, write, perform, settle }: Proof, wasAbsent: boolean): Promise<string> {
  const { key, body, headers } = write;
  if ('IfMatch' in headers) throw new PreconditionError(key);
  const etag = await perform().catch((error: unknown) => {
    if (error instanceof PreconditionError) settle('keeps');
    if (error instanceof ConfigError && error.code === refusalCode) settle('does not know');
    throw error;
  });
  const verdict = await writeUnmet(bucket, write, { Body: body, ContentType: contentTypeOf(key) });
  settle(verdict);
  if (verdict === 'keeps') return etag;
  if (wasAbsent) await removeOwn(bucket, key);
  throw await refuse(bucket, write, verdict);
}

type Content = Pick<PutObjectCommandInput, 'Body' | 'ContentType' | 'Metadata'>;

/** `hidden`: it may be written and not read, as a node's entry may by the node. */
async function fetchCurrent(
  bucket: Bucket,
  { key, headers }: ConditionalWrite,
): Promise<Content | 'hidden' | undefined> {
  const { client, name, prefix } = bucket;
  const read = async (options: CallOptions): Promise<Content> => {
    const command = new GetObjectCommand({ Bucket: name, Key: `${prefix}${key}` });
    const found = await client.send(command, options);
    const { ContentType, Metadata } = found;
    requireEtag(found.ETag);
    return { Body: await readBody(found, key), ContentType, Metadata };
  };
  try {
    return await callS3(bucket, { verb: 'read', key }, (options) =>
      confirmAbsence(bucket, key, options, () => readWhole(() => read(options), options)),
    );
  } catch (error) {
    const isHidden = error instanceof UnavailableError && error.code === 'denied';
    if (isHidden && 'IfNoneMatch' in headers) return 'hidden';
    throw error;
  }
}

/** Over something that is there, on a condition that does not hold. */
async function writeUnmet(bucket: Bucket, write: ConditionalWrite, content: Content): Promise<Verdict> {
  const { client, name, prefix } = bucket;
  const { key, headers } = write;
  const condition = 'IfMatch' in headers ? { IfMatch: wrongEtag } : headers;
  const command = new PutObjectCommand({ Bucket: name, Key: `${prefix}${key}`, ...content, ...condition });
  const { byteLength: bodyBytes } = content.Body as Uint8Array;
  return await callS3(bucket, { verb: 'write', key, bodyBytes }, async (options) => {
    try {
      requireEtag((await client.send(command, options)).ETag);
      return 'passes over';
    } catch (error) {
      if (isUnmet(error)) return 'keeps';
      if (isUnknown(error)) return 'does not know';
      throw error;
    }
  });
}

/** Where it may not be removed, the refusal is the thing to tell. */
async function removeOwn(bucket: Bucket, key: string): Promise<void> {
  const { client, name, prefix } = bucket;
  const command = new DeleteObjectCommand({ Bucket: name, Key: `${prefix}${key}` });
  await callS3(bucket, { verb: 'delete', key }, (options) => client.send(command, options)).catch(() => {});
}

/** Missing under a condition on its version, changed, or being changed at this moment. */
export function isUnmet(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return statusOf(error) === 412 || error.name === 'NoSuchKey' || isConflict(error);
}

/** Another write on condition is under way, and may fail yet. */
export function isConflict(error: unknown): boolean {
  return error instanceof Error && /^(ConditionalRequestConflict|OperationAborted)$/.test(error.name);
}

export function isUnknown(error: unknown): boolean {
  return statusOf(error) === 501;
}

const refusalCode = 'conditional-writes';

export async function refuse(bucket: Bucket, write: ConditionalWrite, fault: Fault): Promise<ConfigError> {
  const { origin } = await findEndpoint(bucket);
  const cause = `${origin} ${fault} ${headerOf(write)}, without which two writers overwrite each other`;
  return new ConfigError(`cannot ${describeAction(bucket, 'write', write.key)}: ${cause}`, {
    code: refusalCode,
  });
}

function headerOf({ headers }: ConditionalWrite): string {
  return 'IfMatch' in headers ? 'If-Match' : 'If-None-Match';
}
