import { afterAll, beforeAll } from 'vitest';
import type { StorePlace } from '../../../src/lib/store/open.ts';
import { type Cloud, cloudRegion, makeBucket, startCloud } from '../../support/cloud.ts';
import { describeStoreContract } from '../../support/store-contract.ts';

let cloud: Cloud;
let buckets = 0;

beforeAll(async () => {
  cloud = await startCloud({ whenFinished: afterAll });
  Object.assign(process.env, cloud.env);
});

describeStoreContract('a bucket', () => makePlace());
describeStoreContract('a part of a bucket', () => makePlace('/fleet/a%20b'));

async function makePlace(prefix = ''): Promise<StorePlace> {
  buckets += 1;
  await makeBucket(cloud.endpoint, `bucket-${buckets}`);
  return { store: `s3://bucket-${buckets}${prefix}`, region: cloudRegion, endpoint: cloud.endpoint };
}
