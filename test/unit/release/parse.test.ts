import { describe, expect, it } from 'vitest';
import { parseDeployFile } from '../../../src/lib/release/parse.ts';
import { aDatabase, aService, aWebService } from '../../support/builders.ts';

const defaults = { clusterId: 'default', defaultEdge: undefined, backups: 'file:///var/backups/reeve' };

describe('a deploy file', () => {
  it('as the manual has it becomes services as desired.json has them', () => {
    const text = `
cluster: default
services:
  - project: blog
    service: web
    image: registry.example/blog/web:1.4.2
    nodes: [web-1, web-2]        # where it runs; replicas are per node
    replicas: 2
    cpu: 512                     # 1024 = one vCPU
    memory: 256                  # MiB
    env: { LOG_LEVEL: info }
    secrets: [DATABASE_URL]      # shorthand for secretRefs
    ingress: { domain: blog.example.com, port: 8080, edge: edge-1 }
    healthCheck: { path: /healthz, intervalMs: 2000, timeoutMs: 2000, healthyThreshold: 2 }
    rollout: { maxSurge: 1, drainTimeout: 20s, stopGrace: 30s }
    volumes: [{ name: data, path: /data }]
  - project: blog
    service: nightly
    image: registry.example/blog/web:1.4.2
    nodes: [web-1]
    cron: "0 3 * * *"
`;
    const image = 'registry.example/blog/web:1.4.2';
    expect(parseDeployFile(text, 'blog.yaml', defaults)).toEqual({
      services: [
        {
          key: 'blog/web',
          nodes: ['web-1', 'web-2'],
          service: aWebService({
            image,
            replicas: 2,
            env: { LOG_LEVEL: 'info' },
            secretRefs: [{ name: 'DATABASE_URL', ssm: '/launch-pad/default/blog/web/DATABASE_URL' }],
            volumes: [{ name: 'data', path: '/data' }],
          }),
        },
        {
          key: 'blog/nightly',
          nodes: ['web-1'],
          service: aService({ service: 'nightly', image, cron: '0 3 * * *' }),
        },
      ],
      warnings: [],
    });
  });

  it('takes what it leaves out from the cluster: edge, bucket, prefix', () => {
    const text = file(`
    ingress: { domain: a.example.com, port: 80 }
    volumes: [{ name: data, path: /var/lib/postgresql/data }]
    database: { engine: postgres, version: "15" }
    backup: { schedule: "0 3 * * *", retentionDays: 7, retention: { daily: 7 } }`);
    const parsed = parseDeployFile(text, 'f.yaml', { ...defaults, defaultEdge: 'edge-9' });
    expect(parsed.services).toEqual([
      {
        key: 'blog/web',
        nodes: ['web-1'],
        service: aDatabase({
          service: 'web',
          image: 'img:1',
          ingress: { domain: 'a.example.com', port: 80, edge: 'edge-9' },
          backup: {
            schedule: '0 3 * * *',
            retentionDays: 7,
            bucket: 'file:///var/backups/reeve',
            prefix: 'default/blog/web/',
            retention: { daily: 7 },
          },
        }),
      },
    ]);
  });

  it('may share parts by YAML merge keys', () => {
    const text = `services:
  - &web { project: blog, service: web, image: "img:1", nodes: [web-1] }
  - { <<: *web, service: api }
`;
    expect(parseDeployFile(text, 'f.yaml', defaults).services.map(({ key }) => key)).toEqual([
      'blog/web',
      'blog/api',
    ]);
  });

  it('has its fields in one order, whatever the order they are written in (R1)', () => {
    const text = `services: [{ nodes: [web-1], memory: 64, env: {}, image: "img:1", service: web, project: blog }]`;
    const [placed] = parseDeployFile(text, 'f.yaml', defaults).services;
    expect(Object.keys(placed?.service ?? {})).toEqual([
      'project',
      'service',
      'image',
      'cpu',
      'memory',
      'replicas',
      'env',
      'secretRefs',
      'ingress',
      'healthCheck',
      'rollout',
      'volumes',
    ]);
  });

  it('with a check that nobody makes gets a warning', () => {
    const parsed = parseDeployFile(file('healthCheck: { path: /up }'), 'f.yaml', defaults);
    expect(parsed.warnings).toEqual([
      'healthCheck of "blog/web" has no effect: a service without ingress is not probed',
    ]);
  });
});

describe('a deploy file is refused with the place and the field', () => {
  const ingress = 'ingress: { domain: a.example.com, port: 80, edge: edge-1 }';

  it.each([
    ['an unknown field', 'imge: x', '6:5: unknown key "imge" in services[0]: did you mean "image"?'],
    [
      'an unknown field deep inside',
      'rollout: { maxSurges: 2 }',
      '6:16: unknown key "maxSurges" in services[0].rollout: did you mean "maxSurge"?',
    ],
    [
      'a retention tier with a typing mistake (O30)',
      'backup: { schedule: "0 3 * * *", retentionDays: 7, retention: { dayly: 7 } }',
      '6:69: unknown key "dayly" in services[0].backup.retention: did you mean "daily"?',
    ],
    [
      'a check in exec form (R17)',
      'healthCheck: ["curl", "-f", "http://x", "||", "exit 1"]',
      '6:18: services[0].healthCheck must be a mapping with a path: checks are HTTP requests, not commands, not a list',
    ],
    [
      'a check without a path (R17)',
      'healthCheck: { path: healthz }',
      '6:26: services[0].healthCheck.path must be a path that starts with "/", not "healthz"',
    ],
    ['a number for text', 'env: { PORT: 80 }', '6:18: services[0].env.PORT must be text, not the number 80'],
    ['no text for a variable', 'env: { A: }', '6:15: services[0].env.A must be text, not null'],
    [
      'a wrong duration',
      'rollout: { drainTimeout: 1h }',
      '6:30: services[0].rollout.drainTimeout must be a duration such as "20s" (ms, s or m), not "1h"',
    ],
    ['too little memory', 'memory: 4', '6:13: services[0].memory must be at least 6, not the number 4'],
    [
      'half a replica',
      'replicas: 1.5',
      '6:15: services[0].replicas must be a whole number, not the number 1.5',
    ],
    ['a billion of replicas', 'replicas: 1000000000', '6:15: services[0].replicas cannot be more than 1000'],
    ['no replica', 'replicas: 0', '6:15: services[0].replicas must be at least 1, not the number 0'],
    [
      'a secret in lower case',
      'secrets: [token]',
      '6:15: services[0].secrets[0] must be a name of capital letters, digits and "_", not "token"',
    ],
    [
      'a name in env and in secrets (L140)',
      'env: { TOKEN: x }\n    secrets: [TOKEN]',
      '7:15: services[0].secrets[0] "TOKEN" stands in env, too: it can be one or the other',
    ],
    [
      'a secret twice',
      'secrets: [TOKEN]\n    secretRefs: [{ name: TOKEN, ssm: /x }]',
      '7:26: services[0].secretRefs[0].name "TOKEN" is there twice',
    ],
    [
      'a bad domain',
      'ingress: { domain: "a b", port: 80, edge: e }',
      '6:24: services[0].ingress.domain "a b" is no domain name',
    ],
    [
      'no edge anywhere',
      'ingress: { domain: a.example.com, port: 80 }',
      '6:5: services[0].ingress.edge is missing, and the cluster has no default edge',
    ],
    [
      'two replicas of a database (R37)',
      'replicas: 2\n    database: { engine: postgres, version: "15" }',
      '6:15: services[0].replicas a database cannot have 2 replicas: they would be 2 engines on one volume',
    ],
    [
      'several runs at once',
      'replicas: 2\n    cron: "0 3 * * *"',
      '6:15: services[0].replicas cannot be more than 1 where cron starts the runs',
    ],
    [
      'a schedule that serves',
      `cron: "0 3 * * *"\n    ${ingress}`,
      '7:14: services[0].ingress cannot stand beside cron: a run serves nothing',
    ],
    [
      'a schedule that never comes',
      'cron: "0 3 30 2 *"',
      '6:11: services[0].cron "0 3 30 2 *" never comes: no year has such a day',
    ],
    [
      'a schedule with names',
      'cron: "0 3 * * MON"',
      '6:11: services[0].cron "0 3 * * MON" is no schedule: day of week "MON" is no number',
    ],
    [
      'a zone without schedule',
      'timeZone: Europe/Berlin',
      '6:15: services[0].timeZone is of use only beside cron',
    ],
    [
      'a backup of nothing',
      'backup: { schedule: "0 3 * * *", retentionDays: 7 }',
      '6:13: services[0].backup needs a database beside it',
    ],
    [
      'zero days of retention (O24)',
      'backup: { schedule: "0 3 * * *", retentionDays: 0 }',
      '6:53: services[0].backup.retentionDays must be at least 1, not the number 0',
    ],
    [
      'a NUL in a value (R50)',
      'env: { A: "x\\0y" }',
      '6:15: services[0].env.A the value holds a NUL character',
    ],
    ['the same node twice', 'nodes: [web-1]', '6:5: this key stands twice in the same mapping'],
  ])('%s', (_, line, problem) => {
    expect(() => parseDeployFile(file(line), 'f.yaml', defaults)).toThrow(
      `cannot deploy "f.yaml": ${problem}`,
    );
    expect(problemsOf(file(line))).toHaveLength(1);
  });

  it.each([
    ['a service twice', 'service: web, nodes: [a]', '3:5: services[1] "blog/web" is there twice'],
    [
      'a domain twice, however it is spelt',
      'service: api, nodes: [a], ingress: { domain: A.example.com, port: 81, edge: edge-1 }',
      '3:77: services[1].ingress.domain "a.example.com" is the domain of "blog/web" on a already',
    ],
    ['a node twice', 'service: api, nodes: [a, b, a]', '3:60: services[1].nodes[2] "a" is there twice'],
    [
      'an upper-case name',
      'service: Api, nodes: [a]',
      '3:41: services[1].service "Api" is no service name: use lower-case letters, digits and "-", at most 40, not starting with "-"',
    ],
    [
      'a node that is a path',
      'service: api, nodes: [../x]',
      '3:54: services[1].nodes[0] must be the id of a node, not "../x"',
    ],
    [
      'no node',
      'service: api, nodes: []',
      '3:53: services[1].nodes must be a list with at least one node, not a list',
    ],
    ['nodes forgotten', 'service: api', '3:5: services[1].nodes is missing'],
  ])('%s', (_, fields, problem) => {
    const text = `services:
  - { project: blog, service: web, image: a, nodes: [a], ${ingress} }
  - { project: blog, image: a, ${fields} }
`;
    expect(problemsOf(text)).toEqual([problem]);
  });

  it('two backups of which one lies in the other, however it is written (O28)', () => {
    const database = (name: string, prefix: string, bucket = 'b'): string =>
      `{ project: p, service: ${name}, image: "i", nodes: [n], database: { engine: postgres, version: "15" }, ` +
      `backup: { schedule: "0 3 * * *", retentionDays: 1, bucket: "${bucket}", prefix: ${prefix} } }`;
    const text = `services:\n  - ${database('one', 'dumps')}\n  - ${database('two', 'dumps/two/')}\n`;
    expect(problemsOf(text)).toEqual([
      '3:176: services[1].backup.prefix lies in the backups of "p/one", or the reverse',
    ]);
    const spelled = `services:\n  - ${database('one', 'dumps')}\n  - ${database('two', 'two/', 's3://b/dumps')}\n`;
    expect(problemsOf(spelled)).toEqual([
      expect.stringContaining('services[1].backup.prefix lies in the backups of "p/one"'),
    ]);
  });

  it.each([
    ['empty', '\n', 'it is empty'],
    ['only a comment', '# nothing\n', 'it is empty'],
    [
      'of another cluster',
      'cluster: eu\nservices: [{ project: p, service: s, image: i, nodes: [n] }]',
      '1:10: it is for cluster "eu", and this machine deploys to "default"',
    ],
    [
      'without services',
      'services: []',
      '1:11: services must be a list with at least one service, not a list',
    ],
    [
      'no YAML',
      'services: [',
      '1:12: this is not valid YAML: flow sequence in block collection must be sufficiently indented and end with a ]',
    ],
    ['with NULs', 'services: \0', 'it holds NUL bytes'],
    ['huge', `# ${'x'.repeat(5_000_000)}`, 'it is larger than 4 MiB'],
    ['nested beyond reason', '['.repeat(100_000), '1:'],
  ])('when it is %s', (_, text, problem) => {
    expect(() => parseDeployFile(text, 'f.yaml', defaults)).toThrow(`cannot deploy "f.yaml": ${problem}`);
  });

  it('with all mistakes at once, in the order of the file', () => {
    expect(problemsOf(file('cpus: 1\n    memory: lots'))).toEqual([
      '6:5: unknown key "cpus" in services[0]: did you mean "cpu"?',
      '7:13: services[0].memory must be a number, not "lots"',
    ]);
  });
});

function file(lines: string): string {
  return `services:
  - project: blog
    service: web
    image: img:1
    nodes: [web-1]
    ${lines.trim()}
`;
}

function problemsOf(text: string): string[] {
  try {
    parseDeployFile(text, 'f.yaml', defaults);
    return [];
  } catch (error) {
    return (error as Error).message.replace('cannot deploy "f.yaml": ', '').split('; ');
  }
}
