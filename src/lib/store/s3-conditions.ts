// Writes on condition, of which each is done once: what an answer that got lost or a write of another at the same moment leaves
// open is found out here.
import { randomUUID } from 'node:crypto';
import { HeadObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { systemClock } from '../time.ts';
import { confirmAbsence } from './s3-absence.ts';
import { type Bucket, type CallOptions, callS3 } from './s3-client.ts';
import { contentTypeOf, requireEtag } from './s3-object.ts';
import { type ConditionalWrite, createGuard, isConflict, isUnknown, isUnmet, refuse } from './s3-proof.ts';
import { PreconditionError, type PutCondition } from './store.ts';

export type Conditions = {
  /** The new etag. Throws PreconditionError, and ConfigError for a service that has no such writes. */
  put(key: string, body: Uint8Array, condition: PutCondition): Promise<string>;
};

/** A name for one write, with the object: an answer that got lost does not tell whether it has been done. */
const writeIdKey = 'reeve-write';

/** Another's write that is under way is over by then, and this one goes through or is too late. */
const maxConflicts = 4;
const conflictPauseMs = 100;

export function createConditions(bucket: Bucket): Conditions {
  const guard = createGuard(bucket);
  return {
    put: async (key, body, condition) => {
      const headers =
        'ifAbsent' in condition ? ({ IfNoneMatch: '*' } as const) : { IfMatch: `"${condition.ifMatch}"` };
      const write: ConditionalWrite = { key, body, headers };
      return await guard(write, () => putOnCondition(bucket, write));
    },
  };
}

async function putOnCondition(bucket: Bucket, write: ConditionalWrite): Promise<string> {
  const { name, prefix } = bucket;
  const { key, body, headers } = write;
  const writeId = randomUUID();
  const command = new PutObjectCommand({
    ...{ Bucket: name, Key: `${prefix}${key}`, Body: body, ContentType: contentTypeOf(key) },
    ...{ Metadata: { [writeIdKey]: writeId }, ...headers },
  });
  return await callS3(bucket, { verb: 'write', key, bodyBytes: body.length }, async (options) => {
    const sent = await sendThroughConflicts(bucket, command, options);
    if ('etag' in sent) return sent.etag;
    const { error, wasRepeated } = sent;
    if (isUnknown(error)) throw await refuse(bucket, write, 'does not know');
    if (!isUnmet(error)) throw error;
    const own = wasRepeated ? await findOwnWrite(bucket, key, writeId, options) : undefined;
    if (own === undefined) throw new PreconditionError(key);
    return own;
  });
}

type Sent = { etag: string } | { error: unknown; wasRepeated: boolean };

/** A conflict says that nothing is decided yet: it is sent again until the condition holds or does not. */
async function sendThroughConflicts(
  { client }: Bucket,
  command: PutObjectCommand,
  options: CallOptions,
): Promise<Sent> {
  let wasRepeated = false;
  for (let conflicts = 0; ; conflicts++) {
    try {
      return { etag: requireEtag((await client.send(command, options)).ETag) };
    } catch (error) {
      wasRepeated ||= attemptsOf(error) > 1;
      if (!isConflict(error) || conflicts === maxConflicts) return { error, wasRepeated };
      await systemClock.sleep(conflictPauseMs * 2 ** conflicts * (0.5 + Math.random()), options.abortSignal);
    }
  }
}

function attemptsOf(error: unknown): number {
  return (error as { $metadata?: { attempts?: number } }).$metadata?.attempts ?? 1;
}

/** The first try may have been done and its answer lost: then it is our own write that the second one has met. */
async function findOwnWrite(
  bucket: Bucket,
  key: string,
  writeId: string,
  options: CallOptions,
): Promise<string | undefined> {
  const { client, name, prefix } = bucket;
  const command = new HeadObjectCommand({ Bucket: name, Key: `${prefix}${key}` });
  const found = await confirmAbsence(bucket, key, options, () => client.send(command, options));
  return found?.Metadata?.[writeIdKey] === writeId ? requireEtag(found.ETag) : undefined;
}
