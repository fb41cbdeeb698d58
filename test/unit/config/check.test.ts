import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { checkConfig } from '../../../src/lib/config/check.ts';
import type { Overrides } from '../../../src/lib/config/environment.ts';
import { buildJsonSchema } from '../../../src/lib/config/schema.ts';
import { exactDuration, showConfig } from '../../../src/lib/config/show.ts';
import { parseDuration } from '../../../src/lib/time.ts';
import { createConfigHome } from '../../support/config-home.ts';

const example = await readFile(new URL('../../fixtures/config/reeve.yaml', import.meta.url), 'utf8');

describe('config check', () => {
  it('says what each section is, and lists warnings (P21)', async () => {
    const home = await createConfigHome(
      'cluster: { nodeId: web-1, role: [app, edge], store: "file:///s" }\ncommands: { file: node.yaml }\nactions: { root: /a }\n',
    );
    await home.write('node.yaml', 'machine_id: 7\ntoken: geheim\n');
    expect(await checkConfig(home.paths, {})).toEqual({
      outcome: 'done',
      text: [
        `ok ${home.root}/reeve.yaml`,
        'ok cluster: node web-1 of default, app and edge, store file:///s',
        `ok commands: machine 7, API on 127.0.0.1:7100 (${home.root}/node.yaml)`,
        'ok actions: control side in /a',
        'warning: commands.central_base_url is empty: no heartbeats are sent to that control plane',
      ],
      data: {
        sections: [
          { name: 'cluster', summary: 'node web-1 of default, app and edge, store file:///s' },
          {
            name: 'commands',
            file: `${home.root}/node.yaml`,
            summary: 'machine 7, API on 127.0.0.1:7100',
          },
          { name: 'actions', summary: 'control side in /a' },
        ],
        warnings: ['commands.central_base_url is empty: no heartbeats are sent to that control plane'],
        problems: [],
      },
    });
  });

  it('exits 78 with the problems of all files, by file and place (P21)', async () => {
    const home = await createConfigHome('jobs: { file: node.yaml }\nhoks: {}\ncluster: { nodeIdd: x }\n');
    await home.write('node.yaml', 'concurency: 4\nserver_url: https://x\nnode_id: n\n');
    const outcome = await checkConfig(home.paths, {});
    expect([outcome.outcome, outcome.exitCode, outcome.text]).toEqual([
      'failed',
      78,
      [
        `${home.root}/reeve.yaml:2:1: unknown key "hoks" at the top level: did you mean "hooks"?`,
        `${home.root}/reeve.yaml:3:12: unknown key "nodeIdd" in cluster: did you mean "nodeId"?`,
        `${home.root}/node.yaml:1:1: unknown key "concurency" at the top level: did you mean "concurrency"?`,
        'warning: jobs.http.tls is off while jobs.http.listen is :8444: whoever reaches it can start containers',
      ],
    ]);
  });
});

describe('config show', () => {
  const overrides: Overrides = { LAUNCHPAD_ONCE: '1', AWS_ENDPOINT_URL: 'http://user:geheim@127.0.0.1:1' };

  it('prints the merged result as YAML, with where it comes from', async () => {
    const home = await createConfigHome(example);
    const { text } = await showConfig(home.paths, overrides);
    expect(text.slice(0, 4)).toEqual([
      `# from ${home.root}/reeve.yaml`,
      '# overridden by LAUNCHPAD_ONCE=1',
      '# overridden by AWS_ENDPOINT_URL=http://***@127.0.0.1:1',
      'cluster:',
    ]);
    expect(parse(text.join('\n'))).toMatchObject({
      cluster: { nodeId: 'web-1', endpoint: 'http://***@127.0.0.1:1' },
      commands: { machine_id: 42, token: '***' },
    });
  });

  it('prints no secret, as text or as data', async () => {
    const home = await createConfigHome(
      example.replace('[/usr/local/bin/page, "{unit}"]', '[/usr/local/bin/page, --key, geheim]'),
    );
    const outcome = JSON.stringify(await showConfig(home.paths, overrides));
    expect(outcome).not.toMatch(/geheim|tok-3f9c|hc\.example\/abc/);
  });

  it('refuses a configuration that is wrong', async () => {
    const home = await createConfigHome('hoks: {}\n');
    await expect(showConfig(home.paths, {})).rejects.toMatchObject({ exitCode: 78 });
  });
});

describe('config schema', () => {
  it('is a JSON Schema that knows every documented key and no other', () => {
    const schema = buildJsonSchema() as {
      $schema: string;
      properties: Record<string, { properties: object }>;
    };
    const written = parse(example) as Record<string, object>;
    expect(schema.$schema).toBe('https://json-schema.org/draft/2020-12/schema');
    expect(Object.keys(schema.properties)).toEqual(Object.keys(written));
    for (const [name, section] of Object.entries(written)) {
      const known = Object.keys(schema.properties[name]?.properties ?? {});
      expect(known.filter((key) => key !== 'file').toSorted()).toEqual(Object.keys(section).toSorted());
    }
    expect(JSON.stringify(schema)).not.toContain('"additionalProperties":true');
  });
});

describe('exactDuration', () => {
  it.each([
    [0, '0s'],
    [250, '250ms'],
    [1500, '1500ms'],
    [60_000, '60s'],
    [120_000, '120s'],
    [300_000, '5m'],
    [90_000, '90s'],
    [3_600_000, '1h'],
    [5_400_000, '90m'],
  ])('of %i ms is %s, and reads back', (ms, text) => {
    expect(exactDuration(ms)).toBe(text);
    expect(parseDuration(text)).toBe(ms);
  });
});
