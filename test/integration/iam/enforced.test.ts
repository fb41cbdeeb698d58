// A fleet whose roles may do what `reeve node iam` says and nothing else: everything works, and each right is needed.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, it, vi } from 'vitest';
import { openStore } from '../../../src/lib/store/open.ts';
import { type Cloud, cloudRegion, startCloud } from '../../support/cloud.ts';
import { startEdge } from '../../support/edge.ts';
import { type Door, openDoor } from '../../support/guarded-cloud.ts';
import { makeNode, type ReeveEnd, type TestNode } from '../../support/node.ts';
import { startProcess } from '../../support/programs.ts';
import { aWebDeploy } from '../../support/services.ts';
import { streamOf } from '../../support/store-contract.ts';

const account = '000000000000';
const bucket = 'state';
const dumps = 'dumps';
const clusterId = 'fleet';
const backups = `s3://${dumps}/nightly`;
const cluster = { store: `s3://${bucket}/all`, region: cloudRegion, clusterId, notify: 'sns', backups };

type Policy = { Statement: { Sid: string }[] };

async function policyOf(node: TestNode, ...flags: string[]): Promise<Policy> {
  const end = await node.reeve('node', 'iam', '--account', account, ...flags);
  expect([end.status, end.stderr]).toEqual([0, '']);
  return JSON.parse(end.stdout) as Policy;
}

async function open(cloud: Cloud, policy: Policy): Promise<Door> {
  return await openDoor(cloud.endpoint, policy, { buckets: [bucket, dumps], region: cloudRegion, account });
}

const sids = ({ Statement: statements }: Policy): string[] => statements.map(({ Sid }) => Sid).sort();
/** What the engine does with. */
const elsewhere = ['AppLogInToRegistries', 'AppPullImages'];

function must(end: ReeveEnd, ...statuses: number[]): ReeveEnd {
  expect([end.status, end.stdout, end.stderr]).toEqual([
    expect.toBeOneOf([0, ...statuses]),
    expect.anything(),
    expect.not.stringContaining('403'),
  ]);
  expect(end.stderr).not.toMatch(/AccessDenied|cannot/);
  return end;
}

/** A dump in parts beside one that broke off two days ago, and its end: what a backup does with the store. */
async function keepDump(cloud: Cloud, door: Door): Promise<string> {
  for (const [name, value] of Object.entries(cloud.env)) vi.stubEnv(name, value);
  const store = await openStore({ store: backups, region: cloudRegion, endpoint: door.endpoint });
  const directory = `${clusterId}/iam/db/app`;
  const startedAt = new Date(Date.now() - 48 * 3_600_000).toISOString();
  await fetch(`${cloud.endpoint}/${dumps}/nightly/${directory}/broken.gz?uploads`, {
    method: 'POST',
    headers: { 'x-test-started-at': startedAt },
  });
  const key = `${directory}/2026-06-04T03-00-00Z.sql.gz`;
  await store.putStream(key, streamOf(Array.from({ length: 11 }, () => Buffer.alloc(1024 * 1024))));
  expect((await store.list(`${directory}/`)).map((entry) => entry.key)).toEqual([key]);
  await store.delete(key);
  vi.unstubAllEnvs();
  return await (await fetch(`${cloud.endpoint}/${dumps}?uploads`)).text();
}

/** Of a document, and whether there is one. */
const readsOf = (key: string): string[] => [
  `s3:GetObject arn:aws:s3:::${bucket}/${key}`,
  `s3:ListBucket arn:aws:s3:::${bucket} ${key}`,
];

describe('roles that may do what their policies say', () => {
  it('run a fleet, and need all that they may', async () => {
    const cloud = await startCloud({ buckets: [bucket, dumps] });
    const node = makeNode({ project: 'iam', cluster, env: { ...cloud.env, AWS_ENDPOINT_URL: '' } });
    const policies = {
      app: await policyOf(node, '--role', 'app'),
      edge: await policyOf(node, '--role', 'edge', '--node', 'edge-1'),
      deploy: await policyOf(node, '--role', 'deploy'),
    };
    const doors = {
      app: await open(cloud, policies.app),
      edge: await open(cloud, policies.edge),
      deploy: await open(cloud, policies.deploy),
    };
    const as = (role: keyof typeof doors): Record<string, string> => ({
      AWS_ENDPOINT_URL: doors[role].endpoint,
    });
    const app = (...words: string[]): Promise<ReeveEnd> => node.start(words, as('app')).end;
    const operator = (...words: string[]): Promise<ReeveEnd> => node.start(words, as('deploy')).end;

    // They join.
    const joining = { REEVE_CONFIG: join(node.root, 'new/reeve.yaml'), ...as('app') };
    const store = ['--store', cluster.store, '--cluster', clusterId];
    must(await node.start(['init', '--node', node.nodeId, ...store], joining).end);
    const edge = await startEdge({
      balancer: 'caddy',
      cluster,
      env: { ...cloud.env, ...as('edge') },
    });
    const asEdge = { ...edge.environment, REEVE_CONFIG: join(edge.root, 'new/reeve.yaml') };
    const joined = await startProcess(
      inject('reeveBin'),
      ['init', '--node', 'edge-1', '--role', 'edge', ...store],
      asEdge,
    ).ended;
    expect(joined).toMatchObject({ status: 0 });

    // A deploy, and what follows from it.
    const file = join(node.root, 'services.yaml');
    // An edge that nobody has heard of yet, too.
    const ingress = { domain: 'other.example.com', port: 8080, edge: 'edge-2' };
    const services = [aWebDeploy({ replicas: 1 }), aWebDeploy({ service: 'other', replicas: 1, ingress })];
    const placed = services.map((service) => ({ nodes: [node.nodeId], project: 'iam', ...service }));
    writeFileSync(file, JSON.stringify({ services: placed }));
    must(await operator('deploy', file, '--yes'));
    const listening = app('listen', '--window', '15');
    must(await app('reconcile'));
    must(await app('heartbeat'));
    const ticked = await edge.reeve('edge', '--json');
    expect([ticked.status, ticked.json().domains]).toEqual([0, 1]);
    expect((await edge.reeve('heartbeat')).status).toBe(0);
    for (const service of ['iam/web', 'iam/other']) must(await operator('restart', service, '--yes'));
    must(await app('reconcile'));
    expect((await edge.reeve('edge', '--json')).status).toBe(0);
    must(await operator('rollback', 'iam/web', '--dry-run'), 1);
    must(await operator('status', '--cluster'), 1);
    must(await app('prune'));
    for (let round = 0; round < 6; round += 1) must(await operator('restart', 'iam/web', '--yes'));
    must(await operator('deploy', '--remove', 'iam', '--yes'));
    must(await app('reconcile'));
    expect((await edge.reeve('edge')).status).toBe(0);
    expect((await edge.reeve('doctor')).stdout).toContain("this node's part can be read");
    must(await listening);
    const heard = await edge.reeve('listen', '--window', '6');
    expect([heard.status, heard.stderr]).toEqual([0, expect.not.stringContaining('AccessDenied')]);
    must(await app('doctor'), 1);
    expect(await keepDump(cloud, doors.app)).not.toContain('<Upload>');

    const entry = `all/clusters/${clusterId}/cluster.json`;
    // The emulator has to show that it keeps to conditions, as AWS has not: with what may be read, and without where nothing may.
    const shown = [entry, `all/clusters/${clusterId}/nodes/edge-1/node.json`].flatMap(readsOf);
    const denied = (role: keyof typeof doors) => doors[role].denied.filter((line) => !shown.includes(line));
    expect({ app: denied('app'), edge: denied('edge'), deploy: doors.deploy.denied }).toEqual({
      // Somebody else makes the cluster's own entry.
      app: [`s3:PutObject arn:aws:s3:::${bucket}/${entry}`],
      edge: [`s3:PutObject arn:aws:s3:::${bucket}/${entry}`],
      deploy: [],
    });
    for (const role of ['app', 'edge', 'deploy'] as const) {
      const needed = sids(policies[role]).filter((sid) => !elsewhere.includes(sid));
      expect([role, [...doors[role].used].sort()]).toEqual([role, needed]);
    }
  });
});
