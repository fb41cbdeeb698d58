// The emulator's S3 as strict as S3 itself, where the emulator is not: writes on condition, keys in byte order, times in whole
// seconds, and the uploads that nobody has completed.
import { S3Error } from '../../node_modules/fauxqs/dist/common/errors.js';
import { S3Store } from '../../node_modules/fauxqs/dist/s3/s3Store.js';

type Headers = Readonly<Record<string, string | string[] | undefined>>;

type S3Object = ReturnType<S3Store['putObject']>;
type Listing = ReturnType<S3Store['listObjects']>;
type Upload = { bucket: string; key: string; startedAt: Date };

/** S3 gives a thousand at a time; so few make a test of pages short. */
const maxUploads = 5;

export class StrictS3 extends S3Store {
  /** What the request at hand has said. Handlers run to their end without a pause, so that it is never another one's. */
  headers: Headers = {};
  readonly #uploads = new Map<string, Upload>();

  override putObject(
    bucket: string,
    key: string,
    body: Buffer,
    ...about: [string?, Record<string, string>?]
  ) {
    this.#requireCondition(bucket, key);
    return inWholeSeconds(super.putObject(bucket, key, body, ...about));
  }

  override listObjects(bucket: string, options: Parameters<S3Store['listObjects']>[1] = {}): Listing {
    const { prefix = '', delimiter, maxKeys = 1000, startAfter = options.marker ?? '' } = options;
    if (delimiter !== undefined) return super.listObjects(bucket, options);
    const found = super
      .listObjects(bucket, { prefix, maxKeys: Number.POSITIVE_INFINITY })
      .objects.filter(({ key }) => compareBytes(key, startAfter) > 0)
      .sort((a, b) => compareBytes(a.key, b.key));
    return { objects: found.slice(0, maxKeys), commonPrefixes: [], isTruncated: found.length > maxKeys };
  }

  override createMultipartUpload(bucket: string, key: string, ...about: [string?, Record<string, string>?]) {
    const id = super.createMultipartUpload(bucket, key, ...about);
    // So that a test can have one that was begun long ago.
    const startedAt = new Date(String(this.headers['x-test-started-at'] ?? new Date().toISOString()));
    this.#uploads.set(id, { bucket, key, startedAt });
    return id;
  }

  override completeMultipartUpload(
    id: string,
    parts: Parameters<S3Store['completeMultipartUpload']>[1],
  ): S3Object {
    const upload = this.#uploads.get(id);
    if (upload !== undefined) this.#requireCondition(upload.bucket, upload.key);
    const object = inWholeSeconds(super.completeMultipartUpload(id, parts));
    this.#uploads.delete(id);
    return object;
  }

  override abortMultipartUpload(id: string): void {
    super.abortMultipartUpload(id);
    this.#uploads.delete(id);
  }

  renderUploads(
    bucket: string,
    { prefix = '', 'key-marker': after = '' }: Readonly<Record<string, string | undefined>>,
  ): string {
    const uploads = [...this.#uploads]
      .filter(([, upload]) => upload.bucket === bucket && upload.key.startsWith(prefix))
      // Where two are of one key, a page could end between them, which needs a second marker.
      .filter(([, { key }]) => compareBytes(key, after) > 0)
      .sort(([, one], [, other]) => compareBytes(one.key, other.key));
    const page = uploads.slice(0, maxUploads);
    const items = page.map(
      ([id, { key, startedAt }]) =>
        `<Upload><Key>${key}</Key><UploadId>${id}</UploadId><Initiated>${startedAt.toISOString()}</Initiated></Upload>`,
    );
    const isTruncated = page.length < uploads.length;
    const next = isTruncated ? `<NextKeyMarker>${page.at(-1)?.[1].key}</NextKeyMarker>` : '';
    return `<?xml version="1.0" encoding="UTF-8"?><ListMultipartUploadsResult><Bucket>${bucket}</Bucket><IsTruncated>${isTruncated}</IsTruncated>${next}${items.join('')}</ListMultipartUploadsResult>`;
  }

  #requireCondition(bucket: string, key: string): void {
    const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = this.headers;
    if (ifMatch === undefined && ifNoneMatch === undefined) return;
    // Without a bucket it is the write that fails.
    if (!this.hasBucket(bucket)) return;
    const [current] = super
      .listObjects(bucket, { prefix: key, maxKeys: Number.POSITIVE_INFINITY })
      .objects.filter((object) => object.key === key);
    if (ifMatch !== undefined && current === undefined) {
      throw new S3Error('NoSuchKey', 'The specified key does not exist.', 404);
    }
    if (ifMatch === undefined ? current !== undefined : ifMatch !== current?.etag) {
      throw new S3Error(
        'PreconditionFailed',
        'At least one of the pre-conditions you specified did not hold',
        412,
      );
    }
  }
}

function inWholeSeconds(object: S3Object): S3Object {
  object.lastModified = new Date(Math.floor(object.lastModified.getTime() / 1000) * 1000);
  return object;
}

function compareBytes(left: string, right: string): number {
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}
