import { describe, expect, it } from 'vitest';
import { createConfigHome } from '../../support/config-home.ts';

describe('the edge’s part', () => {
  it('takes ports, issuer and authority of Caddy, and the place of HAProxy', async () => {
    const home = await createConfigHome(
      'cluster: { nodeId: a, role: edge, balancer: haproxy,\n' +
        '  caddy: { httpPort: 8080, httpsPort: 8443, issuer: acme, email: a@b.c, acmeDirectory: "https://ca/dir" },\n' +
        '  haproxy: { address: "[::1]:7301", directory: /srv/balancer } }\n',
    );
    const { cluster } = await home.load();
    expect([cluster?.caddy, cluster?.haproxy]).toEqual([
      {
        admin: 'http://127.0.0.1:2019',
        httpPort: 8080,
        httpsPort: 8443,
        issuer: 'acme',
        email: 'a@b.c',
        acmeDirectory: 'https://ca/dir',
      },
      { address: '[::1]:7301', directory: '/srv/balancer' },
    ]);
  });

  it.each([
    ['caddy: { httpPort: 443 }', '1:42: cluster.caddy.httpPort must differ from cluster.caddy.httpsPort'],
    ['caddy: { email: me }', '1:39: cluster.caddy.email must be an e-mail address, not "me"'],
    ['caddy: { issuer: internal, email: a@b.c }', '1:57: cluster.caddy.email is only for the issuer "acme"'],
    [
      'haproxy: { address: "0.0.0.0:7300" }',
      '1:43: cluster.haproxy.address must be IP:PORT on the loopback, not "0.0.0.0:7300": only Caddy may reach it',
    ],
    [
      'haproxy: { address: "127.0.0.1:0" }',
      '1:43: cluster.haproxy.address must be IP:PORT on the loopback, not "127.0.0.1:0": only Caddy may reach it',
    ],
    [
      'haproxy: { address: "127.0.0.1:2019" }',
      '1:43: cluster.haproxy.address must have another port than cluster.caddy.admin, 2019',
    ],
    [
      'haproxy: { address: "127.0.0.1:443" }',
      '1:43: cluster.haproxy.address must have another port than cluster.caddy.httpsPort, 443',
    ],
  ])('refuses %s', async (settings, problem) => {
    const home = await createConfigHome(`cluster: { nodeId: a, ${settings} }\n`);
    expect(await home.problems()).toEqual([`reeve.yaml:${problem}`]);
  });

  it.each(['ROOT/run', 'ROOT/state/balancer', 'ROOT/cache'])(
    'refuses the directory %s for HAProxy’s sockets, which is ours',
    async (directory) => {
      const home = await createConfigHome(`cluster: { nodeId: a, haproxy: { directory: ${directory} } }\n`);
      expect(await home.problems()).toEqual([
        expect.stringMatching(/^reeve.yaml:1:45: cluster.haproxy.directory must be a directory of its own, /),
      ]);
    },
  );

  it('takes a directory whose name only begins like one of ours', async () => {
    const home = await createConfigHome(
      'cluster: { nodeId: a, haproxy: { directory: ROOT/run-balancer } }\n',
    );
    expect(await home.problems()).toEqual([]);
  });

  it('warns of an admin API that others can reach', async () => {
    const warningsOf = async (admin: string): Promise<readonly string[]> => {
      const home = await createConfigHome(`cluster: { nodeId: a, caddy: { admin: "${admin}" } }\n`);
      return (await home.load()).warnings;
    };
    expect(await warningsOf('http://192.0.2.7:2019')).toEqual([
      'Caddy\'s admin API at "http://192.0.2.7:2019" is not on a private address: whoever reaches it is asked for nothing',
    ]);
    for (const admin of ['http://127.0.0.1:2019', 'http://[::1]:2019', 'http://localhost:2019'])
      expect(await warningsOf(admin)).toEqual([]);
  });

  it('is told all that is wrong at once, shape and rules', async () => {
    const home = await createConfigHome(
      'cluster:\n  nodeId: a\n  balancer: nginx\n  haproxy: { address: "0.0.0.0:7300", directory: foo }\n',
    );
    const problems = await home.problems();
    expect(problems.map((problem) => problem.replace(/ must .*/, ''))).toEqual([
      'reeve.yaml:3:13: cluster.balancer',
      'reeve.yaml:4:23: cluster.haproxy.address',
      'reeve.yaml:4:50: cluster.haproxy.directory',
    ]);
  });
});
