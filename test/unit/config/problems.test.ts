import { describe, expect, it } from 'vitest';
import { findNearest } from '../../../src/lib/config/problems.ts';
import { createConfigHome } from '../../support/config-home.ts';

describe('problems', () => {
  it('names an unknown key, its place and the key that is meant', async () => {
    const home = await createConfigHome('cluster:\n  nodeId: a\n  intervall: { tick: 5s }\n');
    expect(await home.problems()).toEqual([
      'reeve.yaml:3:3: unknown key "intervall" in cluster: did you mean "intervals"?',
    ]);
  });

  it('says of what is nested too deeply just that, whatever the parser says', async () => {
    const home = await createConfigHome(`cluster: ${'['.repeat(100_000)}`);
    expect((await home.problems())[0]).toMatch(/^reeve\.yaml:1:\d+: it is nested too deeply$/);
  });

  it.each([
    [
      'at the top level',
      'clustre: {}\n',
      '1:1: unknown key "clustre" at the top level: did you mean "cluster"?',
    ],
    [
      'in a nested mapping',
      'cluster: { nodeId: a, intervals: { tik: 5s } }\n',
      '1:36: unknown key "tik" in cluster.intervals: did you mean "tick"?',
    ],
    [
      'in the spelling of another system',
      'cluster: { node_id: a }\n',
      '1:12: unknown key "node_id" in cluster: did you mean "nodeId"?',
    ],
    [
      'that resembles nothing',
      'cluster: { docker: { certificate: x } }\n',
      '1:22: unknown key "certificate" in cluster.docker: known keys are socket, parallel',
    ],
  ])('names an unknown key %s', async (_title, yaml, problem) => {
    const home = await createConfigHome(yaml);
    expect(await home.problems()).toEqual([`reeve.yaml:${problem}`]);
  });

  it.each([
    ['a number for text', 'cluster: { nodeId: 7 }', '1:20: cluster.nodeId must be text, not the number 7'],
    ['text for a mapping', 'cluster: web', '1:10: cluster must be a mapping, not "web"'],
    ['nothing for a mapping', 'jobs:', '1:6: jobs must be a mapping, not null'],
    ['a list for the file', '- a', '1:1: the file must be a mapping, not a list'],
    [
      'text for a number',
      'cluster: { nodeId: a, docker: { parallel: four } }',
      '1:43: cluster.docker.parallel must be a whole number, not "four"',
    ],
    [
      'a fraction for a whole number',
      'cluster: { nodeId: a, docker: { parallel: 1.5 } }',
      '1:43: cluster.docker.parallel must be a whole number, not the number 1.5',
    ],
    [
      'a number out of range',
      'cluster: { nodeId: a, docker: { parallel: 0 } }',
      '1:43: cluster.docker.parallel must be at least 1, not the number 0',
    ],
    [
      'another word',
      'cluster: { nodeId: a, balancer: nginx }',
      '1:33: cluster.balancer must be "auto" or "haproxy" or "caddy", not "nginx"',
    ],
    [
      'a duration without its unit, which is never taken for 0',
      'cluster: { nodeId: a, intervals: { tick: "60" } }',
      '1:42: cluster.intervals.tick must be a duration such as 60s, 1m30s or 250ms, not "60"',
    ],
    [
      'a negative duration',
      'cluster: { nodeId: a, intervals: { edge: -5s } }',
      '1:42: cluster.intervals.edge must be a duration such as 60s, 1m30s or 250ms, not "-5s"',
    ],
    [
      'an interval of nothing',
      'cluster: { nodeId: a, intervals: { tick: 0s } }',
      '1:42: cluster.intervals.tick must be longer than 0s',
    ],
    [
      'an interval beyond all timers',
      'cluster: { nodeId: a, intervals: { edge: 99999999999d } }',
      '1:42: cluster.intervals.edge must be a day at most',
    ],
    [
      'the legacy role (L13)',
      'cluster: { nodeId: a, role: both }',
      '1:29: cluster.role must be "app", "edge" or [app, edge] (the legacy role "both" is refused), not "both"',
    ],
    ['a role without a node', 'cluster: { role: app }', '1:18: cluster.role needs cluster.nodeId beside it'],
    [
      'an edge id on a node that is no edge',
      'cluster: { nodeId: a, edgeId: b }',
      '1:31: cluster.edgeId is only for a node whose role has edge',
    ],
    [
      'one id for node and edge of a box that is both',
      'cluster: { nodeId: a, role: [app, edge], edgeId: a }',
      '1:50: cluster.edgeId must differ from cluster.nodeId on a node that is both app and edge',
    ],
    [
      'another store scheme',
      'cluster: { store: "http://x/y" }',
      '1:19: cluster.store must be file:///DIRECTORY or s3://BUCKET[/PREFIX], not "http://x/y"',
    ],
    [
      'a store directory that is relative',
      'cluster: { store: "file://store" }',
      '1:19: cluster.store must be file:///DIRECTORY or s3://BUCKET[/PREFIX], not "file://store"',
    ],
    [
      'a bucket that has no such name',
      'cluster: { store: "s3://State" }',
      '1:19: cluster.store must be s3://BUCKET[/PREFIX] (the name of a bucket has 3 to 63 small letters, digits, "." and "-", and begins and ends with a letter or digit), not "s3://State"',
    ],
    [
      'a prefix that no key can have',
      'cluster: { region: eu-west-1, backups: "s3://state/pre//x" }',
      '1:40: cluster.backups must be s3://BUCKET[/PREFIX] (no part of its prefix is empty, begins with a dot, or is longer than a name may be), not "s3://state/pre//x"',
    ],
    [
      'a bucket without its region',
      'cluster: { store: "s3://bucket" }',
      '1:1: cluster.region must be the region of s3://bucket',
    ],
    [
      'secrets and notifications of AWS without their region',
      'cluster: { nodeId: a, secrets: ssm, notify: sns }',
      '1:1: cluster.region must be the region of secrets: ssm',
    ],
    [
      'notifications of AWS without their region',
      'cluster: { nodeId: a, notify: sns }',
      '1:1: cluster.region must be the region of notify: sns',
    ],
    [
      'publishing on an address that is not known',
      'cluster: { nodeId: a, publish: advertise }',
      '1:32: cluster.publish is "advertise", which needs advertiseIp',
    ],
    [
      'publishing on no address',
      'cluster: { nodeId: a, publish: eth0 }',
      '1:32: cluster.publish must be an IP address or "advertise", not "eth0"',
    ],
    [
      'an address that is none',
      'cluster: { nodeId: a, advertiseIp: 10.0.0 }',
      '1:36: cluster.advertiseIp must be an IP address, not "10.0.0"',
    ],
    [
      'a key twice',
      'cluster: { nodeId: a }\ncluster: { nodeId: b }',
      '2:1: this key stands twice in the same mapping',
    ],
    [
      'a second document',
      'hooks: {}\n---\nhooks: {}',
      '2:1: a second YAML document begins here: only one is read',
    ],
    [
      'no YAML',
      'cluster: [',
      '2:1: this is not valid YAML: flow sequence in block collection must be sufficiently indented and end with a ]',
    ],
    [
      'a hook that tells nobody',
      'hooks: { failure: { timeout: 5s } }',
      '1:19: hooks.failure needs a command or a url',
    ],
    [
      'a hook found by PATH',
      'hooks: { failure: { command: [page] } }',
      '1:31: hooks.failure.command[0] must be the absolute path of a program',
    ],
    [
      'a hook that may take longer than the unit that runs it',
      'hooks: { failure: { command: [/bin/page], timeout: 5m } }',
      '1:52: hooks.failure.timeout must be 4m at most: reeve-failed@.service is ended after 5m',
    ],
  ])('refuses %s', async (_title, yaml, problem) => {
    const home = await createConfigHome(`${yaml}\n`);
    expect(await home.problems()).toEqual([`reeve.yaml:${problem}`]);
  });

  it('lists what a section lacks beside what is misspelt in it', async () => {
    const home = await createConfigHome('jobs:\n  server_urll: https://x\n  node_id: n\n');
    expect(await home.problems()).toEqual([
      'reeve.yaml:1:1: jobs.server_url is missing: write it, or name the file that has it with "file"',
      'reeve.yaml:2:3: unknown key "server_urll" in jobs: did you mean "server_url"?',
    ]);
  });

  it.each([
    ['a token of the wrong type', 'commands: { machine_id: 1, token: [geheim] }'],
    ['a token with a blank', 'commands: { machine_id: 1, token: "geheim geheim" }'],
    ['a number for a token', 'commands: { machine_id: 1, token: 67676767 }'],
    ['a hook url that is none', 'hooks: { failure: { url: "geheim" } }'],
    ['credentials in a url', 'cluster: { endpoint: "http://geheim:67676767@x y" }'],
    ['a token in YAML that cannot be read', 'commands: { token: "geheim\\q" }'],
  ])('never quotes a secret: %s', async (_title, yaml) => {
    const home = await createConfigHome(`${yaml}\n`);
    const problems = (await home.problems()).join('\n');
    expect(problems).not.toBe('');
    expect(problems).not.toMatch(/geheim|67676767/);
  });
});

describe('findNearest', () => {
  it.each([
    ['intervall', ['intervals', 'store'], 'intervals'],
    ['NODEID', ['nodeId', 'agentId'], 'nodeId'],
    ['puhs', ['pull', 'push'], 'push'],
    ['zzzzzz', ['pull', 'push'], undefined],
    ['x', [], undefined],
  ])('of %s among %j is %s', (key, known, nearest) => {
    expect(findNearest(key, known)).toBe(nearest);
  });
});
