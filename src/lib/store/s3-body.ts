// The body of an answer, as far as a document may be long.
import type { Readable } from 'node:stream';
import type { GetObjectCommandOutput } from '@aws-sdk/client-s3';
import { InputError } from '../errors.ts';
import type { CallOptions } from './s3-client.ts';
import { requireDocumentSize } from './text.ts';

const maxReads = 3;

/** The SDK tries again until an answer begins; this does where one breaks off. */
export async function readWhole<Value>(
  read: () => Promise<Value>,
  { abortSignal }: CallOptions,
): Promise<Value> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof BrokenAnswer)) throw error;
      if (attempt === maxReads || abortSignal?.aborted === true) throw error.cause;
    }
  }
}

/** With the connection's error as its cause. */
class BrokenAnswer extends Error {}

/** Throws InputError for more than a document may have, also where no length was announced; else what `readWhole` tries again. */
export async function readBody(
  { Body: body, ContentLength: announcedBytes = 0 }: Pick<GetObjectCommandOutput, 'Body' | 'ContentLength'>,
  key: string,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  try {
    requireDocumentSize(announcedBytes, key);
    for await (const chunk of (body as Readable | undefined) ?? []) {
      sizeBytes += (chunk as Uint8Array).byteLength;
      requireDocumentSize(sizeBytes, key);
      chunks.push(chunk as Uint8Array);
    }
  } catch (error) {
    // What has not been read would keep its connection.
    (body as Readable | undefined)?.destroy();
    if (error instanceof InputError) throw error;
    throw new BrokenAnswer('the answer broke off', { cause: error });
  }
  return Buffer.concat(chunks);
}
