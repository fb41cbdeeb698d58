// Which service a bucket's requests would go to. Nothing is sent.
import { beforeEach, expect, it, vi } from 'vitest';
import { buildS3Client, defaultS3Limits } from '../../../src/lib/store/s3-client.ts';
import { findEndpoint } from '../../../src/lib/store/s3-endpoint.ts';

beforeEach(() => {
  vi.unstubAllEnvs();
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'test');
  vi.stubEnv('AWS_CONFIG_FILE', '/dev/null');
  vi.stubEnv('AWS_ENDPOINT_URL', undefined);
  vi.stubEnv('AWS_ENDPOINT_URL_S3', undefined);
});

async function find(region: string, endpoint?: string) {
  const place = { region, ...(endpoint === undefined ? {} : { endpoint }) };
  return await findEndpoint({ client: buildS3Client(place, defaultS3Limits, 'documents'), name: 'state' });
}

it.each([
  ['eu-central-1', 'https://s3.eu-central-1.amazonaws.com'],
  ['cn-north-1', 'https://s3.cn-north-1.amazonaws.com.cn'],
  ['us-gov-west-1', 'https://s3.us-gov-west-1.amazonaws.com'],
  ['eusc-de-east-1', 'https://s3.eusc-de-east-1.amazonaws.eu'],
  ['us-iso-east-1', 'https://s3.us-iso-east-1.c2s.ic.gov'],
  ['us-isob-east-1', 'https://s3.us-isob-east-1.sc2s.sgov.gov'],
  ['eu-isoe-west-1', 'https://s3.eu-isoe-west-1.cloud.adc-e.uk'],
  ['us-isof-south-1', 'https://s3.us-isof-south-1.csp.hci.ic.gov'],
])('is AWS in %s where nobody names another', async (region, origin) => {
  expect(await find(region)).toEqual({ origin, isAws: true });
});

it.each([
  ['https://s3.eu-central-1.amazonaws.com', true],
  ['https://s3.dualstack.eu-central-1.amazonaws.com', true],
  ['https://bucket.vpce-1a2b.s3.eu-central-1.vpce.amazonaws.com', true],
  ['http://127.0.0.1:9000', false],
  ['http://[::1]:9000', false],
  ['http://state.example.com', false],
  ['http://state.example.com/base', false],
  ['https://s3.amazonaws.com.example.com', false],
  ['https://notamazonaws.com', false],
])('is what the configuration names: %s', async (endpoint, isAws) => {
  const { origin } = new URL(endpoint);
  expect(await find('eu-central-1', endpoint)).toEqual({ origin, isAws });
});

it('is what the environment names, without its credentials and the name of the bucket', async () => {
  vi.stubEnv('AWS_ENDPOINT_URL_S3', 'https://user:secret@storage.example.com:9000/base');
  expect(await find('eu-central-1')).toEqual({ origin: 'https://storage.example.com:9000', isAws: false });
});
