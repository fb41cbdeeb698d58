import { describe, expect, it } from 'vitest';
import { findBucketFault, parseBucketUrl } from '../../../src/lib/store/bucket-url.ts';
import { openStore } from '../../../src/lib/store/open.ts';
import { createConfigHome } from '../../support/config-home.ts';

const badName = /^the name of a bucket has 3 to 63 small letters/;
const badPrefix = /^no part of its prefix is empty/;

describe('the URL of a bucket', () => {
  it.each([
    ['s3://state', { bucket: 'state', prefix: '' }],
    ['s3://state/', { bucket: 'state', prefix: '' }],
    ['s3://my.state-1/pre/x/', { bucket: 'my.state-1', prefix: 'pre/x' }],
    ['s3://state/a%20b', { bucket: 'state', prefix: 'a b' }],
  ])('%s is %o', (url, parts) => {
    expect(parseBucketUrl(url)).toEqual(parts);
  });

  it.each([
    ['s3://State', badName],
    ['s3://st_ate/x', badName],
    ['s3://', badName],
    ['s3://state-', badName],
    ['s3://state/pre//x', badPrefix],
    ['s3://state/pre//x/', badPrefix],
    ['s3://state/.pre', badPrefix],
    [`s3://state/${'x'.repeat(241)}`, badPrefix],
    ['s3://state/%ff', /is no text$/],
    ['s3://me@state', /^a bucket has no user/],
    ['s3://state/x?y', /^a bucket has no user/],
  ])('%s is refused by the store, and by the configuration before it', async (url, fault) => {
    expect(findBucketFault(url)).toMatch(fault);
    await expect(openStore({ store: url, region: 'eu-west-1' })).rejects.toMatchObject({
      ...{ exitCode: 78, message: `cannot open store ${JSON.stringify(url)}: ${findBucketFault(url)}` },
    });
    const home = await createConfigHome(`cluster: { region: eu-west-1, store: "${url}" }\n`);
    await expect(home.load()).rejects.toMatchObject({
      message: expect.stringContaining(`must be s3://BUCKET[/PREFIX] (${findBucketFault(url)}), not "s3://`),
    });
  });
});
