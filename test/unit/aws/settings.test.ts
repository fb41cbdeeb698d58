import { describe, expect, it } from 'vitest';
import { cloudPlaceOf } from '../../../src/lib/aws/settings.ts';
import { openStore } from '../../../src/lib/store/open.ts';

const endpoint = 'http://127.0.0.1:9000';

describe('where services are', () => {
  it.each([
    [{ region: 'eu-west-1' }, { region: 'eu-west-1' }],
    [{ region: 'eu-west-1', endpoint: undefined }, { region: 'eu-west-1' }],
    [
      { region: 'eu-west-1', endpoint },
      { region: 'eu-west-1', endpoint },
    ],
    // What has no regions takes this one.
    [
      { region: 'local', endpoint },
      { region: 'us-east-1', endpoint },
    ],
  ])('for %j is %j', (configured, place) => {
    expect(cloudPlaceOf(configured)).toEqual(place);
  });

  it('is not known without a region and an endpoint, for any of them', async () => {
    const missing = {
      ...{ name: 'ConfigError', exitCode: 78, message: 'cannot reach AWS: cluster.region is missing' },
    };
    expect(() => cloudPlaceOf({ region: 'local' })).toThrow(expect.objectContaining(missing));
    await expect(openStore({ store: 's3://state', region: 'local' })).rejects.toMatchObject(missing);
    await expect(openStore({ store: 's3://state' })).rejects.toMatchObject(missing);
  });
});
