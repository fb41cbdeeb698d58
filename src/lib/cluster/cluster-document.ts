// cluster.json: the cluster's own entry, of which launch-pad's CLI knows every field and takes no other. Pure.
import { InputError } from '../errors.ts';
import { splitObject } from './json-text.ts';
import type { ClusterDocument } from './wire.ts';

export function describeCluster(
  about: Pick<ClusterDocument, 'clusterId' | 'region' | 'createdAt' | 'createdBy'> &
    Partial<Pick<ClusterDocument, 'defaultEdge' | 'snsTopicArn'>>,
): ClusterDocument {
  const { clusterId, defaultEdge = null, region, createdAt, createdBy, snsTopicArn = null } = about;
  return { clusterId, defaultEdge, region, createdAt, createdBy, autoscale: null, snsTopicArn };
}

/** The text with another topic, all else byte for byte as it is. Throws InputError for what is no JSON object. */
export function replaceTopicArn(text: string, arn: string): string {
  const members = splitObject(requireObject(text));
  const value = JSON.stringify(arn);
  const found = members.findLast(({ name }) => name === 'snsTopicArn');
  if (found !== undefined) return `${text.slice(0, found.start)}${value}${text.slice(found.end)}`;
  const last = members.at(-1);
  if (last === undefined) return `{\n  "snsTopicArn": ${value}\n}\n`;
  return `${text.slice(0, last.end)},\n  "snsTopicArn": ${value}${text.slice(last.end)}`;
}

function requireObject(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return text;
  } catch (error) {
    throw new InputError('cannot change cluster.json: it is not JSON', { cause: error });
  }
  throw new InputError('cannot change cluster.json: it is no object');
}
