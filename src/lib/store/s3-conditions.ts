// Writes on condition. A service that does not know the headers may refuse them, which is honest, or pass them over, which
// loses other people's writes: so one that is not AWS has to show once a process that it keeps to them.
import { randomUUID } from 'node:crypto';
import { DeleteObjectCommand, HeadObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { statusOf } from '../aws/failures.ts';
import { ConfigError } from '../errors.ts';
import { type Bucket, type CallOptions, callS3, describeAction } from './s3-client.ts';
import { contentTypeOf, requireEtag } from './s3-object.ts';
import { PreconditionError, type PutCondition } from './store.ts';

export type Conditions = {
  /** The new etag. Throws PreconditionError, and ConfigError for a service that has no such writes. */
  put(key: string, body: Uint8Array, condition: PutCondition): Promise<string>;
};

type Headers = { IfMatch: string } | { IfNoneMatch: '*' };

/** A name for one write, with the object: an answer that got lost does not tell whether it has been done. */
const writeIdKey = 'reeve-write';

export function createConditions(bucket: Bucket): Conditions {
  const shown = new Map<string, Promise<void>>();
  const requireShown = (key: string, headers: Headers): Promise<void> => {
    // AWS has both since 2024.
    if (bucket.place.endpoint === undefined) return Promise.resolve();
    const [header = ''] = Object.keys(headers);
    const known = shown.get(header) ?? showCondition(bucket, key, headers);
    shown.set(header, known);
    return known;
  };
  return {
    put: async (key, body, condition) => {
      const headers: Headers =
        'ifAbsent' in condition ? { IfNoneMatch: '*' } : { IfMatch: `"${condition.ifMatch}"` };
      await requireShown(key, headers);
      return await putOnCondition(bucket, key, body, headers);
    },
  };
}

async function putOnCondition(
  bucket: Bucket,
  key: string,
  body: Uint8Array,
  headers: Headers,
): Promise<string> {
  const { client, name, prefix } = bucket;
  const writeId = randomUUID();
  const command = new PutObjectCommand({
    ...{ Bucket: name, Key: `${prefix}${key}`, Body: body, ContentType: contentTypeOf(key) },
    ...{ Metadata: { [writeIdKey]: writeId }, ...headers },
  });
  return await callS3(bucket, { verb: 'write', key, bodyBytes: body.length }, async (options) => {
    const written = await client.send(command, options).catch(async (error: unknown) => {
      if (isUnknown(error)) throw refuse(bucket, key, headers, 'does not know');
      if (!isUnmet(error)) throw error;
      const own = wasTriedAgain(error) ? await findOwnWrite(bucket, key, writeId, options) : undefined;
      if (own === undefined) throw new PreconditionError(key);
      return own;
    });
    return requireEtag(key, written.ETag);
  });
}

/** Missing under a condition on its version, changed, or being changed at this moment. */
function isUnmet(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return statusOf(error) === 412 || error.name === 'NoSuchKey' || error.name === 'ConditionalRequestConflict';
}

function isUnknown(error: unknown): boolean {
  return statusOf(error) === 501;
}

function wasTriedAgain(error: unknown): boolean {
  return ((error as { $metadata?: { attempts?: number } }).$metadata?.attempts ?? 1) > 1;
}

/** The first try may have been done and its answer lost: then it is our own write that the second one has met. */
async function findOwnWrite(
  { client, name, prefix }: Bucket,
  key: string,
  writeId: string,
  options: CallOptions,
): Promise<{ ETag?: string | undefined } | undefined> {
  const command = new HeadObjectCommand({ Bucket: name, Key: `${prefix}${key}` });
  const found = await client.send(command, options).catch((error: unknown) => {
    if (statusOf(error) === 404) return undefined;
    throw error;
  });
  return found?.Metadata?.[writeIdKey] === writeId ? found : undefined;
}

/** Throws unless the header holds. Nothing is left of it: it has a name of its own, and a condition that cannot be met. */
async function showCondition(bucket: Bucket, key: string, headers: Headers): Promise<void> {
  const { client, name, prefix } = bucket;
  const object = { Bucket: name, Key: `${prefix}.condition-${randomUUID()}` };
  await callS3(bucket, { verb: 'write', key }, async (options) => {
    const put = (conditions: Partial<Headers>) =>
      client.send(new PutObjectCommand({ ...object, Body: new Uint8Array(), ...conditions }), options);
    if ('IfNoneMatch' in headers) await put({});
    const unmet = 'IfNoneMatch' in headers ? headers : { IfMatch: '"00000000000000000000000000000000"' };
    const isHeld = await put(unmet).then(
      () => false,
      (error: unknown) => {
        if (isUnmet(error)) return true;
        throw isUnknown(error) ? refuse(bucket, key, headers, 'does not know') : error;
      },
    );
    if (!isHeld || 'IfNoneMatch' in headers) await client.send(new DeleteObjectCommand(object), options);
    if (!isHeld) throw refuse(bucket, key, headers, 'passes over');
  });
}

function refuse(bucket: Bucket, key: string, headers: Headers, how: string): ConfigError {
  const header = 'IfMatch' in headers ? 'If-Match' : 'If-None-Match';
  const cause = `${bucket.place.endpoint} ${how} ${header}, without which two writers overwrite each other`;
  return new ConfigError(`cannot ${describeAction(bucket, 'write', key)}: ${cause}`, {
    code: 'conditional-writes',
  });
}
