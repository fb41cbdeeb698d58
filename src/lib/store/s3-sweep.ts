// The end of uploads that runs have left which were killed. Their parts are paid for, and nobody sees them.
import { dirname } from 'node:path';
import { AbortMultipartUploadCommand, ListMultipartUploadsCommand } from '@aws-sdk/client-s3';
import { waitUntil } from '../abort.ts';
import type { Bucket, CallOptions } from './s3-client.ts';

/** What nobody has ended by then nobody will. */
const staleMs = 24 * 60 * 60 * 1000;

/** The next upload goes on where this one's sweep has stopped. */
const sweepMs = 10_000;
const maxPages = 20;

/** In the directory of the key. It is housekeeping: a service that does not let it be done is left alone. */
export async function endStaleUploads(bucket: Bucket, key: string): Promise<void> {
  const directory = `${bucket.prefix}${dirname(key)}/`.replace(/(^|\/)\.\/$/, '$1');
  const deadline = AbortSignal.timeout(sweepMs);
  const abortSignal = bucket.signal === undefined ? deadline : AbortSignal.any([deadline, bucket.signal]);
  // Whatever goes wrong, see above.
  await waitUntil(abortSignal, () => endPages(bucket, directory, { abortSignal })).catch(() => {});
}

async function endPages(bucket: Bucket, directory: string, options: CallOptions): Promise<void> {
  let from: Marker | undefined = {};
  for (let page = 0; page < maxPages && from !== undefined; page++) {
    from = await endPage(bucket, directory, from, options);
  }
}

type Marker = { KeyMarker?: string; UploadIdMarker?: string };

/** Gives where the next page begins. */
async function endPage(
  { client, name }: Bucket,
  directory: string,
  from: Marker,
  options: CallOptions,
): Promise<Marker | undefined> {
  const page = await client.send(
    new ListMultipartUploadsCommand({ Bucket: name, Prefix: directory, ...from }),
    options,
  );
  // By the service's clock, which its answer has told: this machine's may be a day ahead.
  const oldest = Date.now() + client.config.systemClockOffset - staleMs;
  for (const { Key, UploadId, Initiated: startedAt } of page.Uploads ?? []) {
    if ((startedAt?.getTime() ?? oldest) >= oldest) continue;
    // Another may have been quicker, or one is not ours to end: it does not keep the others.
    const command = new AbortMultipartUploadCommand({ Bucket: name, Key, UploadId });
    await client.send(command, options).catch(() => options.abortSignal?.throwIfAborted());
  }
  const { IsTruncated: isTruncated, NextKeyMarker, NextUploadIdMarker } = page;
  if (isTruncated !== true || NextKeyMarker === undefined) return undefined;
  return {
    KeyMarker: NextKeyMarker,
    ...(NextUploadIdMarker === undefined ? {} : { UploadIdMarker: NextUploadIdMarker }),
  };
}
