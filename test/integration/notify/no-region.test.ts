// A configuration that names an endpoint and no region, as for services that have none.
import { describe, expect, it, vi } from 'vitest';
import { openSecrets } from '../../../src/lib/secrets/secrets.ts';
import { makeListeningNode } from '../../support/listening.ts';
import { startNotified, topicArnOf, warningsOf } from '../../support/notified.ts';
import { startSsm } from '../../support/ssm-server.ts';

const queue = 'launch-pad-default-web-1';

describe('a configuration without a region', () => {
  it('notifies and listens where it names an endpoint', async () => {
    const notified = await startNotified(['web-1']);
    const { operator, proxy } = notified;
    const cluster = { store: `file://${operator.root}/store`, notify: 'sns', endpoint: proxy.endpoint };
    operator.write('reeve.yaml', JSON.stringify({ cluster }));
    const end = await notified.deploy(['web-1']);
    expect([end.status, warningsOf(end)]).toEqual([0, []]);
    const saved = JSON.parse(operator.stored('clusters/default/cluster.json') ?? '');
    expect(saved.snsTopicArn).toBe(topicArnOf('default'));
    const scopes = proxy.seen.map(
      ({ headers }) => /Credential=\w+\/\d+\/([^/]+)\//.exec(`${headers['authorization']}`)?.[1],
    );
    expect([...new Set(scopes)]).toEqual(['us-east-1']);

    const node = makeListeningNode(notified.env, { region: undefined, endpoint: proxy.endpoint });
    const heard = await node.start('--window', '6').ended;
    expect([heard.status, heard.stdout]).toEqual([0, `queue ${queue}: 1 message\n`]);
  });

  it('and without an endpoint is refused in one line by both', async () => {
    const notified = await startNotified(['web-1']);
    const { operator } = notified;
    const AWS_ENDPOINT_URL = undefined as unknown as string;
    Object.assign(operator.environment, { AWS_ENDPOINT_URL });
    operator.write(
      'reeve.yaml',
      JSON.stringify({ cluster: { store: `file://${operator.root}/store`, notify: 'sns' } }),
    );
    const end = await notified.deploy(['web-1']);
    const refused = expect.stringMatching(
      /^reeve: \S+: cluster\.region must be the region of notify: sns\n$/,
    );
    expect([end.status, end.stderr]).toEqual([78, refused]);
    const node = makeListeningNode({ ...notified.env, AWS_ENDPOINT_URL }, { region: undefined });
    const heard = await node.start('--window', '2').ended;
    expect([heard.status, heard.stderr]).toEqual([78, refused]);
  });

  it('gets its secrets where it names an endpoint', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'test');
    const ssm = await startSsm('us-east-1');
    ssm.parameters.set('/launch-pad/prod/A', 'of A');
    const place = { clusterId: 'prod', region: 'local' };
    const secrets = await openSecrets('ssm', { ...place, endpoint: ssm.endpoint });
    expect(await secrets.resolve([{ name: 'A', ssm: '/launch-pad/prod/A' }])).toEqual({ A: 'of A' });
    await expect(openSecrets('ssm', place)).rejects.toMatchObject({
      ...{ name: 'ConfigError', message: 'cannot reach AWS: cluster.region is missing' },
    });
    await ssm.stop();
  });
});
