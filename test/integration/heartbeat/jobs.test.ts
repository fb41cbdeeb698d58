// `reeve heartbeat` of a node that takes jobs: a real process, and a strict server over mutual TLS 1.3.
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import type { Beats } from '../../../src/lib/heartbeat/plan-beat.ts';
import { aNodeStatus } from '../../support/builders.ts';
import { type JobsMachine, makeJobsMachine } from '../../support/jobs-machine.ts';
import { startNodeProgram } from '../../support/programs.ts';
import { sentenceOfProgram } from '../../support/sentence.ts';
import { measureInTurn } from '../../support/timing.ts';

const beats = (machine: JobsMachine): Beats => machine.json('state/backoff/jobs.json') as Beats;
const waitMs = ({ lastTriedAt, nextAt }: Beats): number => Date.parse(nextAt) - Date.parse(lastTriedAt);

/** As if the interval, or the back-off, were over. */
function letTimePass(machine: JobsMachine): void {
  const before = beats(machine);
  const past = (text: string): string => new Date(Date.parse(text) - 400_000).toISOString();
  machine.write('state/backoff/jobs.json', {
    ...{ version: 1, failures: before.failures },
    ...{ lastTriedAt: past(before.lastTriedAt), nextAt: past(before.nextAt) },
  });
}

describe('a heartbeat of jobs', () => {
  it('P66, P71, P72, P80: goes out at once, with numbers that the server takes, and diagnostics after it', async () => {
    const machine = await makeJobsMachine();
    const end = await machine.reeve('heartbeat', '--json');
    expect([end.status, end.stderr]).toEqual([0, '']);
    const { requests, violations } = machine.ploy.state;
    expect(requests.map(({ route, status }) => [route, status])).toEqual([
      ['heartbeat', 204],
      ['diagnostics', 200],
    ]);
    expect(violations).toEqual([]);
    for (const { headers, certificateName } of requests) {
      expect(headers['authorization']).toBe(`Bearer ${machine.ploy.token}`);
      expect(headers['ploy_node_uuid']).toBe('node-1');
      expect(certificateName).toBe('node:node-1');
    }
    expect(machine.ploy.connections.accepted, 'the connection is kept').toBe(1);
    expect(JSON.parse(end.stdout)).toMatchObject({
      outcome: 'done',
      jobs: { cpu_total_millis: expect.any(Number) },
    });
  });

  it('P19: is left out until the interval is over', async () => {
    const machine = await makeJobsMachine({ heartbeat: { interval: '1m' } });
    await machine.reeve('heartbeat');
    expect(waitMs(beats(machine))).toBe(60_000);
    const early = await machine.reeve('heartbeat', '--json');
    expect([early.status, JSON.parse(early.stdout).outcome]).toEqual([0, 'nothing-to-do']);
    letTimePass(machine);
    await machine.reeve('heartbeat');
    expect(machine.ploy.requestsTo('heartbeat')).toHaveLength(2);
  });

  it('P20: ends where the server does not answer in time', async () => {
    const machine = await makeJobsMachine({ heartbeat: { timeout: '300ms' } });
    machine.ploy.faults.add({ kind: 'silence', route: 'heartbeat' });
    const end = await machine.reeve('heartbeat');
    expect(end.status).toBe(69);
    expect(sentenceOfProgram(end)).toMatch(/^cannot send the heartbeat: .*no answer within 300 ms$/);
    expect(waitMs(beats(machine))).toBe(30_000);
  });

  it('P73: backs off after a 5xx alone, and a success ends that', async () => {
    const machine = await makeJobsMachine();
    machine.ploy.faults.add({ kind: 'answer', status: 503, text: 'not now', route: 'heartbeat', times: 2 });
    machine.ploy.faults.add({
      kind: 'answer',
      status: 400,
      text: '{"error":"no"}',
      route: 'heartbeat',
      times: 1,
    });
    const end = await machine.reeve('heartbeat');
    expect(sentenceOfProgram(end)).toBe('cannot send the heartbeat: the server answered 503: not now');
    expect(beats(machine).failures).toBe(1);
    expect(waitMs(beats(machine))).toBeGreaterThanOrEqual(2_500);
    expect(waitMs(beats(machine))).toBeLessThanOrEqual(7_500);
    letTimePass(machine);
    await machine.reeve('heartbeat');
    expect(beats(machine).failures).toBe(2);
    letTimePass(machine);
    expect(sentenceOfProgram(await machine.reeve('heartbeat'))).toMatch(/answered 400: no$/);
    expect([beats(machine).failures, waitMs(beats(machine))]).toEqual([0, 30_000]);
    letTimePass(machine);
    expect((await machine.reeve('heartbeat')).status).toBe(0);
  });

  it('R33: goes out while a job and the claims hold their locks', async () => {
    const machine = await makeJobsMachine();
    const holders = ['claim', 'job@job-1'].map((name) =>
      startNodeProgram('hold-lock.ts', [machine.locksDir, name]),
    );
    for (const holder of holders) await holder.waitFor('holding');
    expect((await machine.reeve('heartbeat')).status).toBe(0);
    for (const holder of holders) {
      holder.tell('stop');
      await holder.ended;
    }
  });

  it('P73: was told where its next turn cannot be noted, and a failure is the server’s own', async () => {
    const machine = await makeJobsMachine();
    mkdirSync(machine.stateDir, { recursive: true });
    symlinkSync('/proc/no-such-directory', join(machine.stateDir, 'backoff'));
    const first = await machine.reeve('heartbeat');
    const noted = 'it is not noted when the next heartbeat of jobs is due';
    expect([first.status, first.stderr]).toEqual([0, expect.stringContaining(noted)]);
    expect(machine.ploy.requestsTo('heartbeat').map(({ status }) => status)).toEqual([204]);
    machine.ploy.faults.add({ kind: 'answer', status: 503, route: 'heartbeat' });
    const second = await machine.reeve('heartbeat');
    expect([second.status, sentenceOfProgram(second)]).toEqual([69, expect.stringContaining('503')]);
  });

  it('tells of a token that others can read, and never the token', async () => {
    const machine = await makeJobsMachine();
    chmodSync(machine.files.token, 0o644);
    const end = await machine.reeve('heartbeat');
    expect([end.status, end.stderr]).toEqual([
      0,
      `warning: the token can be read by others: chmod 600 ${machine.files.token}\n`,
    ]);
    machine.ploy.faults.add({
      kind: 'answer',
      status: 400,
      text: `who is ${machine.ploy.token}`,
      route: 'heartbeat',
    });
    letTimePass(machine);
    const refused = await machine.reeve('heartbeat', '--debug');
    expect(refused.stderr).toContain('who is ***');
    expect(refused.stderr).not.toContain(machine.ploy.token);
  });

  it('says what to do about a server of another authority', async () => {
    const machine = await makeJobsMachine();
    const foreign = readFileSync(machine.pki.foreign.ca.cert, 'utf8');
    writeFileSync(machine.files.ca, foreign);
    const end = await machine.reeve('heartbeat');
    expect(end.status).toBe(69);
    expect(sentenceOfProgram(end)).toMatch(
      /another authority than that in ".*ca\.crt": put the right one there$/,
    );
  });
});

describe('a node of both a cluster and jobs', () => {
  it('tells the one whatever the other says, and fails with what has failed', async () => {
    const machine = await makeJobsMachine({ cluster: { nodeId: 'web-1' } });
    machine.write('state/published.json', {
      ...{ version: 1, body: aNodeStatus({ nodeId: 'web-1' }), reeve: null },
      status: { fingerprint: 'x', lastWriteAt: '2026-06-04T03:00:00.000Z' },
    });
    const end = await machine.reeve('heartbeat');
    expect(end.status).toBe(1);
    expect(sentenceOfProgram(end)).toBe('cannot call node "web-1" alive: reconcile has never run');
    expect(machine.ploy.requestsTo('heartbeat').map(({ status }) => status)).toEqual([204]);
  });
});

describe('the time of a heartbeat of jobs', () => {
  it('is at most twice that of a small program that sends the same over the same TLS', {
    retry: 3,
  }, async () => {
    const machine = await makeJobsMachine({ heartbeat: { interval: '1ms' } });
    const { cert, key, ca, token } = machine.files;
    const options = { method: 'POST', minVersion: 'TLSv1.3' };
    const body = {
      ...{ cpu_free_millis: 1, cpu_total_millis: 1, mem_free_bytes: 1, mem_total_bytes: 1 },
      disk_free_bytes: 1,
      disk_total_bytes: 1,
    };
    const program = machine.write(
      'minimal.cjs',
      `const { readFileSync: read } = require('node:fs');
const files = { cert: read(${JSON.stringify(cert)}), key: read(${JSON.stringify(key)}), ca: read(${JSON.stringify(ca)}) };
const headers = { authorization: 'Bearer ' + read(${JSON.stringify(token)}, 'utf8'), 'PLOY_NODE_UUID': 'node-1', 'content-type': 'application/json' };
const outgoing = require('node:https').request(${JSON.stringify(`${machine.ploy.url}/v1/nodes/node-1/heartbeat`)}, { ...${JSON.stringify(options)}, ...files, headers }, (response) => {
  if (response.statusCode !== 204) process.exitCode = 1;
  response.resume();
});
outgoing.end(${JSON.stringify(JSON.stringify(body))});
`,
    );
    const env = {
      ...machine.env,
      REEVE_CONFIG: `${machine.root}/etc/reeve.yaml`,
      REEVE_STATE: machine.stateDir,
      REEVE_RUN: `${machine.root}/run`,
      REEVE_CACHE: `${machine.root}/cache`,
    };
    const times = await measureInTurn(15, {
      minimal: { argv: [process.execPath, program], env },
      reeve: { argv: [inject('reeveBin'), 'heartbeat'], env },
    });
    const ratio = times.reeve / times.minimal;
    console.log(
      `figure: heartbeat of jobs ${times.reeve.toFixed(0)} ms, minimal program ${times.minimal.toFixed(0)} ms, ${ratio.toFixed(2)} times`,
    );
    expect(ratio).toBeLessThanOrEqual(2);
  });
});
