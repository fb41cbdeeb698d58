// The configuration of ployd-node in whole processes: what each of its keys does to the requests that reach the server, and what
// the processes print meanwhile.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { engineSocket } from '../../support/engine.ts';
import { createPki, type Pki } from '../../support/ploy/pki.ts';
import { type Ploy, startPloy } from '../../support/ploy/server.ts';
import { type Program, startProcess } from '../../support/programs.ts';
import { makeTempDir } from '../../support/temp.ts';

const example = new URL('../../fixtures/config/ployd-node.yaml', import.meta.url);

type Node = {
  root: string;
  pki: Pki;
  ploy: Ploy;
  /** Of reeve itself; ployd-node's lies beside it. */
  configFile: string;
  start(words: readonly string[], env?: Record<string, string>): Program;
};

/** The documented example with nothing changed but where things are; `edit` changes more. */
async function aNode(edit = (text: string) => text, isTls = true): Promise<Node> {
  const root = makeTempDir();
  const pki = createPki(root, 'node-001');
  const ploy = await startPloy({ ...(isTls ? { pki } : {}), nodeId: 'node-001' });
  onTestFinished(() => ploy.stop());
  const etc = join(root, 'etc-ploy');
  mkdirSync(join(etc, 'pki'), { recursive: true });
  copyFileSync(pki.node.cert, join(etc, 'pki/node.crt'));
  copyFileSync(pki.node.key, join(etc, 'pki/node.key'));
  copyFileSync(pki.ca.cert, join(etc, 'pki/ca.crt'));
  writeFileSync(join(etc, 'bearer-token'), ploy.token, { mode: 0o600 });
  const text = readFileSync(example, 'utf8')
    .replace('https://ployd.example.com:8443', ploy.url)
    .replaceAll('/etc/ploy', etc);
  writeFileSync(join(etc, 'ployd-node.yaml'), edit(text));
  const configFile = join(root, 'reeve.yaml');
  const cluster = { store: `file://${join(root, 'store')}`, docker: { socket: engineSocket() } };
  writeFileSync(configFile, JSON.stringify({ jobs: { file: join(etc, 'ployd-node.yaml') }, cluster }));
  const environment = {
    REEVE_CONFIG: configFile,
    REEVE_STATE: join(root, 'state'),
    REEVE_RUN: join(root, 'run'),
    REEVE_CACHE: join(root, 'cache'),
    PLOYD_CACHE_HOME: join(root, 'work'),
    PLOY_NODE_BEARER_TOKEN_PATH: join(etc, 'bearer-token'),
  };
  const start: Node['start'] = (words, env = {}) =>
    startProcess(inject('reeveBin'), words, { ...environment, ...env });
  return { root, pki, ploy, configFile, start };
}

describe('the file of ployd-node', () => {
  it('P1 P2 P4 P5 P6 P13 P80: as it is documented makes a node that asks its server, as its node, with its certificate', async () => {
    const node = await aNode();
    const end = await node.start(['claim', '--window', '0']).ended;
    expect([end.status, end.stderr]).toEqual([0, '']);
    const [request] = node.ploy.state.requests;
    expect(request).toMatchObject({
      ...{ method: 'POST', path: '/v1/nodes/node-001/claim', status: 204, certificateName: 'node:node-001' },
      headers: { authorization: `Bearer ${node.ploy.token}`, ploy_node_uuid: 'node-001' },
    });
    expect(node.ploy.state.violations).toEqual([]);
  });

  it.each([
    ['-config', ['-config']],
    ['-config=', []],
    ['--config', ['--config']],
  ])('P3: %s selects another file than the environment does', async (flag, words) => {
    const node = await aNode();
    const flags = words.length > 0 ? [...words, node.configFile] : [`${flag}${node.configFile}`];
    const program = node.start(['claim', '--window', '0', ...flags], { REEVE_CONFIG: '/nowhere/reeve.yaml' });
    expect((await program.ended).status).toBe(0);
    expect(node.ploy.requestsTo('claim')).toHaveLength(1);
  });

  it('P12: without tls.enabled asks over plain HTTP, and needs no certificate', async () => {
    const off = (text: string): string =>
      text.replace(/ {2}tls:\n[\s\S]*?(?=\n# Heartbeat)/, '  tls: { enabled: false }\n');
    const node = await aNode(off, false);
    expect((await node.start(['claim', '--window', '0']).ended).status).toBe(0);
    expect(
      node.ploy.requestsTo('claim').map(({ status, certificateName }) => [status, certificateName]),
    ).toEqual([[204, undefined]]);
  });

  it.each([
    ['P13', 'certificate', 'node.crt', (pki: Pki) => pki.foreign.node.cert],
    ['P14', 'key', 'node.key', (pki: Pki) => pki.foreign.node.key],
    ['P15', 'authority', 'ca.crt', (pki: Pki) => pki.foreign.ca.cert],
  ])(
    '%s: with the %s of somebody else asks nothing, and says which file it is',
    async (_, _what, name, pick) => {
      const node = await aNode();
      const path = join(node.root, 'etc-ploy/pki', name);
      copyFileSync(pick(node.pki), path);
      const end = await node.start(['claim', '--window', '0']).ended;
      expect([end.status === 0, node.ploy.state.requests]).toEqual([false, []]);
      expect(end.stderr).toContain(join(node.root, 'etc-ploy/pki'));
    },
  );

  it('P23: with a concurrency over 64 warns and goes on with 64', async () => {
    const node = await aNode((text) => text.replace('concurrency: 4', 'concurrency: 100'));
    const end = await node.start(['claim', '--window', '0']).ended;
    expect([end.status, end.stderr]).toEqual([0, 'warning: jobs.concurrency 100 is capped at 64\n']);
  });

  it.each([
    ['server_url', /^server_url: .*\n/m],
    ['node_id', /^node_id: .*\n/m],
    ['cert_path', /^ +cert_path: .*\n/m],
    ['key_path', /^ +key_path: .*\n/m],
    ['ca_path', /^ +ca_path: .*\n/m],
  ])('P21: without %s is refused by name before anything is asked', async (name, line) => {
    const node = await aNode((text) => text.replace(line, ''));
    for (const words of [['claim', '--window', '0'], ['heartbeat']]) {
      const end = await node.start(words).ended;
      expect([end.status, end.stderr.includes(name)]).toEqual([78, true]);
    }
    expect(node.ploy.state.requests).toEqual([]);
  });
});

describe('what a process prints', () => {
  const rude = 'line one\nline two \u001b[31mred\u001b[0m\r\n\u0007{"a":1}';

  it('P75 P76: is one line an event on stderr and one JSON document on stdout, whatever the server says', async () => {
    const node = await aNode();
    node.ploy.faults.add({ route: 'claim', kind: 'answer', status: 500, text: rude });
    const end = await node.start(['claim', '--window', '0', '--json']).ended;
    expect(end.status).toBe(69);
    for (const line of end.stderr.trimEnd().split('\n')) {
      expect(line).toMatch(/^(warning|error|reeve): /);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what must not be there
      expect(line).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f]/);
    }
    expect(JSON.parse(end.stdout)).toMatchObject({ version: 1, command: 'claim' });
    expect(`${end.stdout}${end.stderr}`).not.toContain(node.ploy.token);
  });

  it('P75 P76: carries its priority where it goes to the journal, errors above warnings', async () => {
    const node = await aNode();
    node.ploy.faults.add({ route: 'claim', kind: 'answer', status: 500, text: rude });
    const end = await node.start(['claim', '--window', '0'], { JOURNAL_STREAM: '8:1' }).ended;
    const lines = end.stderr.trimEnd().split('\n');
    expect(lines.map((line) => line.slice(0, 3)).sort()).toEqual(['<3>', '<4>']);
    for (const line of lines) expect(line).toMatch(/^<[3-6]>\S/);
  });

  it('P76: of a job, which a process of its own runs, goes where that of claim goes', async () => {
    const node = await aNode();
    const job = node.ploy.queueJob({ spec: { steps: [] } });
    const end = await node.start(['claim', '--window', '0', '--json'], { JOURNAL_STREAM: '8:1' }).ended;
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
    const lines = end.stderr.trimEnd().split('\n');
    expect(lines.filter((line) => line.includes(job.payload.job_id)).length).toBeGreaterThanOrEqual(2);
    for (const line of lines) expect(line).toMatch(/^<[3-6]>\S/);
    expect(JSON.parse(end.stdout)).toMatchObject({ claimed: [job.payload.job_id] });
  });
});
