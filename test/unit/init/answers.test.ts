import { describe, expect, it } from 'vitest';
import { answer, nodeIdOfHost } from '../../../src/lib/init/answers.ts';
import { createConfigHome } from '../../support/config-home.ts';

describe('the region of a new node', () => {
  const store = 's3://launch-pad-state-123456789012-eu-central-1';
  it.each([
    [{ store, region: 'eu-west-1', regionAround: 'eu-north-1' }, 'eu-west-1'],
    [{ store, regionAround: 'eu-north-1' }, 'eu-north-1'],
    [{ store: `${store}/prefix` }, 'eu-central-1'],
    [{ store: 's3://launch-pad-state-123456789012-mine' }, 'us-east-1'],
    [{ store: 's3://State' }, 'us-east-1'],
    [{ store: 's3://state', endpoint: 'http://127.0.0.1:9000', regionAround: 'eu-north-1' }, 'eu-north-1'],
    [{ regionAround: 'eu-north-1' }, 'local'],
  ])('by %j is %s', async (request, region) => {
    const { paths } = await createConfigHome();
    expect(answer({ paths, overrides: {} }, request).region).toBe(region);
  });
});

describe('the endpoint of a new node', () => {
  const overrides = { AWS_ENDPOINT_URL: 'http://127.0.0.1:1' };
  it.each([
    [{}, {}, [undefined, 'ssm', 'sns']],
    [overrides, {}, ['http://127.0.0.1:1', 'file', 'none']],
    [overrides, { endpoint: 'http://127.0.0.1:2' }, ['http://127.0.0.1:2', 'file', 'none']],
  ])('by %j and %j is %j', async (around, request, expected) => {
    const { paths } = await createConfigHome();
    const { endpoint, secrets, notify } = answer(
      { paths, overrides: around },
      { store: 's3://a-b', ...request },
    );
    expect([endpoint, secrets.replace(/:.*/, ''), notify]).toEqual(expected);
  });
});

describe('nodeIdOfHost', () => {
  it.each([
    ['web-1.example.com', 'web-1'],
    ['Web_1', 'Web_1'],
    ['-x', 'x'],
    ['büro', 'b-ro'],
    ['', 'node'],
    ['...', 'node'],
    ['a'.repeat(80), 'a'.repeat(64)],
  ])('of %j is %s', (host, nodeId) => {
    expect(nodeIdOfHost(host)).toBe(nodeId);
  });
});
