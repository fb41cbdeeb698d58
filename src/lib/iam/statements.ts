// Parts of statements that every role has: who needs them, and what may be done with which keys of the store.
import { bucketArn, objectArn, type PolicyPlace } from './place.ts';
import type { Statement } from './policy.ts';

type Part = Omit<Statement, 'since'>;

export const asBefore = (part: Part): Statement => ({ ...part, since: 'launch-pad' });
export const added = (part: Part): Statement => ({ ...part, since: 'reeve' });

/** A key with a star where the node's id is. */
export function anyNode(keyOf: (id: string) => string): string {
  return keyOf('_any_').replace('/_any_/', '/*/');
}

export function read(
  place: PolicyPlace,
  ...keys: readonly string[]
): Pick<Statement, 'actions' | 'resources'> {
  return { actions: ['s3:GetObject'], resources: keys.map((key) => objectArn(place, key)) };
}

export function write(
  place: PolicyPlace,
  ...keys: readonly string[]
): Pick<Statement, 'actions' | 'resources'> {
  return { actions: ['s3:PutObject'], resources: keys.map((key) => objectArn(place, key)) };
}

export function list(
  place: PolicyPlace,
  ...keys: readonly string[]
): Pick<Statement, 'actions' | 'resources' | 'where'> {
  return {
    actions: ['s3:ListBucket'],
    resources: [bucketArn(place, place.bucket)],
    where: { 's3:prefix': keys.map((key) => `${place.prefix}${key}`) },
  };
}
