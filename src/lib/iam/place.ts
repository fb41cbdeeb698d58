// Names of resources as policies have them: everything of one cluster in one account and region.
import type { ClusterConfig } from '../config/config.ts';

export type CloudAccount = {
  partition: string;
  account: string;
  region: string;
};

export type PolicyPlace = CloudAccount & {
  clusterId: string;
  /** Of the store; `prefix` is empty or ends in a slash. */
  bucket: string;
  prefix: string;
  /** Where backups go, if into S3; the prefix as that of the store. */
  backups: { bucket: string; prefix: string } | undefined;
  /** Id of the node or edge. */
  nodeId: string;
  uses: Pick<ClusterConfig, 'secrets' | 'notify' | 'logs' | 'balancer'>;
};

/** Those that are no part of `aws`, by what names of their regions begin with. */
const partitions = [
  ['cn-', 'aws-cn'],
  ['us-gov-', 'aws-us-gov'],
  ['eusc-', 'aws-eusc'],
  ['us-iso-', 'aws-iso'],
  ['us-isob-', 'aws-iso-b'],
  ['eu-isoe-', 'aws-iso-e'],
  ['us-isof-', 'aws-iso-f'],
] as const;

export function partitionOf(region: string): string {
  return partitions.find(([beginning]) => region.startsWith(beginning))?.[1] ?? 'aws';
}

export function bucketArn({ partition }: CloudAccount, bucket: string): string {
  return `arn:${partition}:s3:::${bucket}`;
}

/** `key` may have `*`. */
export function objectArn(place: PolicyPlace, key: string): string {
  return `${bucketArn(place, place.bucket)}/${place.prefix}${key}`;
}

/** Of every other service: `resource` as it is written there. */
export function resourceArn(
  { partition, region, account }: CloudAccount,
  service: string,
  resource: string,
): string {
  return `arn:${partition}:${service}:${region}:${account}:${resource}`;
}
