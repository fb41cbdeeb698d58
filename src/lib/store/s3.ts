// The store in an S3 bucket, or in one of a compatible service. What the service says is checked as little trusted as a file:
// keys that are not ours are passed over, and what is no text is refused.
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { type CloudPlace, cloudPlaceOf } from '../aws/settings.ts';
import { parseBucketUrl } from './bucket-url.ts';
import { isKey, requireKey, requirePrefix } from './key.ts';
import type { StorePlace } from './open.ts';
import { confirmAbsence } from './s3-absence.ts';
import { readBody, readWhole } from './s3-body.ts';
import {
  type Bucket,
  buildS3Client,
  type CallOptions,
  callS3,
  defaultS3Limits,
  type S3Limits,
} from './s3-client.ts';
import { createConditions } from './s3-conditions.ts';
import { listObjects } from './s3-list.ts';
import { contentTypeOf, describeObject, requireEtag } from './s3-object.ts';
import { createStreams } from './s3-stream.ts';
import type { Store, StoredDocument, StoredEntry } from './store.ts';
import { decodeText } from './text.ts';

export type S3Place = {
  bucket: string;
  /** Without slashes at its ends; empty: keys are the bucket's own. */
  prefix: string;
  place: CloudPlace;
  limits?: S3Limits;
};

/** Throws ConfigError for a URL that names no bucket. */
export function openBucket({ store, region = 'local', endpoint }: StorePlace, signal?: AbortSignal): Store {
  return openS3Store({ ...parseBucketUrl(store), place: cloudPlaceOf({ region, endpoint }) }, signal);
}

export function openS3Store(
  { bucket: name, prefix, place, limits = defaultS3Limits }: S3Place,
  signal?: AbortSignal,
): Store {
  const client = buildS3Client(place, limits, 'documents');
  const bucket: Bucket = {
    ...{ name, prefix: prefix === '' ? '' : `${prefix}/` },
    ...{ place, client, limits, signal },
  };
  const conditions = createConditions(bucket);
  const streams = createStreams(bucket, (key) => headObject(bucket, key));
  return {
    url: prefix === '' ? `s3://${name}` : `s3://${name}/${prefix}`,
    get: (key) => getDocument(bucket, key),
    put: async (key, body, condition) => {
      requireObjectKey(bucket, key);
      const bytes = typeof body === 'string' ? Buffer.from(body) : body;
      if (condition === undefined) return { etag: await putObject(bucket, key, bytes) };
      return { etag: await conditions.put(key, bytes, condition) };
    },
    list: (listed) => listEntries(bucket, listed),
    delete: (key) => deleteObject(bucket, key),
    head: (key) => headObject(bucket, key),
    putStream: async (key, source) => {
      requireObjectKey(bucket, key);
      return await streams.put(key, source);
    },
    getStream: async (key) => {
      requireObjectKey(bucket, key);
      return await streams.get(key);
    },
  };
}

/** S3's own limit is for the prefix and the key together. */
function requireObjectKey({ prefix }: Bucket, key: string): void {
  requireKey(key);
  requireKey(`${prefix}${key}`);
}

async function getDocument(bucket: Bucket, key: string): Promise<StoredDocument | undefined> {
  requireObjectKey(bucket, key);
  return await callS3(bucket, { verb: 'read', key }, async (options) => {
    const read = (): Promise<StoredDocument> => readDocument(bucket, key, options);
    return await confirmAbsence(bucket, key, options, () => readWhole(read, options));
  });
}

async function readDocument(
  { client, name, prefix }: Bucket,
  key: string,
  options: CallOptions,
): Promise<StoredDocument> {
  const found = await client.send(new GetObjectCommand({ Bucket: name, Key: `${prefix}${key}` }), options);
  const bytes = await readBody(found, key);
  const { etag, updatedAt } = describeObject(key, found);
  return { text: decodeText(bytes, key), etag, updatedAt };
}

async function putObject(bucket: Bucket, key: string, body: Uint8Array): Promise<string> {
  const { client, name, prefix } = bucket;
  const command = new PutObjectCommand({
    ...{ Bucket: name, Key: `${prefix}${key}`, Body: body },
    ContentType: contentTypeOf(key),
  });
  const call = { verb: 'write', key, bodyBytes: body.length };
  return await callS3(bucket, call, async (options) =>
    requireEtag((await client.send(command, options)).ETag),
  );
}

async function listEntries(bucket: Bucket, listed: string): Promise<StoredEntry[]> {
  requirePrefix(listed);
  const { prefix } = bucket;
  const entries: StoredEntry[] = [];
  for (const { Key: full = '', Size: sizeBytes = 0, ...about } of await listObjects(bucket, listed)) {
    const key = full.slice(prefix.length);
    // Folders that a console has made, and whatever else is nobody's document.
    if (isKey(key)) entries.push({ ...describeObject(key, about), sizeBytes });
  }
  return entries.sort((a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)));
}

async function deleteObject(bucket: Bucket, key: string): Promise<void> {
  requireObjectKey(bucket, key);
  const { client, name, prefix } = bucket;
  await callS3(bucket, { verb: 'delete', key }, async (options) => {
    try {
      await client.send(new DeleteObjectCommand({ Bucket: name, Key: `${prefix}${key}` }), options);
    } catch (error) {
      // Not S3 itself, which calls it success.
      if (!(error instanceof Error && error.name === 'NoSuchKey')) throw error;
    }
  });
}

async function headObject(bucket: Bucket, key: string): Promise<StoredEntry | undefined> {
  requireObjectKey(bucket, key);
  const { client, name, prefix } = bucket;
  return await callS3(bucket, { verb: 'read', key }, async (options) => {
    const found = await confirmAbsence(bucket, key, options, () =>
      client.send(new HeadObjectCommand({ Bucket: name, Key: `${prefix}${key}` }), options),
    );
    return found && { ...describeObject(key, found), sizeBytes: found.ContentLength ?? 0 };
  });
}
