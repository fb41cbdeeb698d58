// Who the store's requests are signed as: a person's environment, a file, or the role of the machine.

import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { type Bucket, startBucket } from '../../support/bucket.ts';
import { type ProgramEnd, startProcess } from '../../support/programs.ts';
import { makeTempDir } from '../../support/temp.ts';

const expiration = new Date(Date.now() + 3_600_000).toISOString();
const role = { SecretAccessKey: 'secret', Token: 'token', Expiration: expiration, Code: 'Success' };

/** A program's environment without any of ours. */
async function list(bucket: Bucket, env: Record<string, string>): Promise<ProgramEnd> {
  const root = makeTempDir();
  writeFileSync(join(root, 'reeve.yaml'), JSON.stringify({ cluster: bucket.settings }));
  const home = { HOME: root, PATH: process.env['PATH'] ?? '', REEVE_CONFIG: join(root, 'reeve.yaml') };
  const places = { REEVE_STATE: root, REEVE_RUN: root, REEVE_CACHE: root };
  const words = Object.entries({ ...home, ...places, ...env }).map(([key, value]) => `${key}=${value}`);
  return await startProcess('env', ['-i', ...words, inject('reeveBin'), 'status', '--cluster']).ended;
}

/** The key that the requests were signed with. */
const signers = ({ proxy }: Bucket): (string | undefined)[] => [
  ...new Set(
    proxy.seen.map(({ headers }) => /Credential=([^/]+)/.exec(String(headers['authorization']))?.[1]),
  ),
];

/** Answers by path, and tells what it was asked. */
async function startRoles(answers: Record<string, string>): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer(({ method, url = '' }, response) => {
    asked.push(`${method} ${url}`);
    const answer = answers[url];
    response.writeHead(answer === undefined ? 404 : 200).end(answer);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** The SDK asks for a role once, and waits a second for it: a machine may stand still for longer now and then. */
const slow = { retry: 2 };

describe('a bucket is asked', () => {
  it('by the environment', async () => {
    const bucket = await startBucket();
    const env = { AWS_ACCESS_KEY_ID: 'from-env', AWS_SECRET_ACCESS_KEY: 'secret' };
    expect((await list(bucket, env)).status).toBe(0);
    expect(signers(bucket)).toEqual(['from-env']);
  });

  it('by a file', async () => {
    const bucket = await startBucket();
    const file = join(makeTempDir(), 'credentials');
    writeFileSync(file, '[default]\naws_access_key_id = from-file\naws_secret_access_key = secret\n');
    expect((await list(bucket, { AWS_SHARED_CREDENTIALS_FILE: file })).status).toBe(0);
    expect(signers(bucket)).toEqual(['from-file']);
  });

  it('by the role of the machine, which takes a session first', slow, async () => {
    const bucket = await startBucket();
    const path = '/latest/meta-data/iam/security-credentials/';
    const { url, asked } = await startRoles({
      '/latest/api/token': 'session',
      [path]: 'node-role',
      [`${path}node-role`]: JSON.stringify({ ...role, AccessKeyId: 'from-machine' }),
    });
    expect((await list(bucket, { AWS_EC2_METADATA_SERVICE_ENDPOINT: url })).status).toBe(0);
    expect(signers(bucket)).toEqual(['from-machine']);
    expect(asked).toEqual(['PUT /latest/api/token', `GET ${path}`, `GET ${path}node-role`]);
  });

  it('by the role of a task', slow, async () => {
    const bucket = await startBucket();
    const { url } = await startRoles({ '/role': JSON.stringify({ ...role, AccessKeyId: 'from-task' }) });
    expect((await list(bucket, { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/role` })).status).toBe(0);
    expect(signers(bucket)).toEqual(['from-task']);
  });

  it('by nobody where there are none, which is told in one line', async () => {
    const bucket = await startBucket();
    const end = await list(bucket, { AWS_EC2_METADATA_SERVICE_ENDPOINT: 'http://127.0.0.1:1' });
    expect([end.status, end.stderr]).toEqual([
      69,
      'reeve: cannot list "nodes/" in store "s3://state": Could not load credentials from any providers: they come from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), from ~/.aws (AWS_PROFILE must name a profile that is there), or from the machine\'s role\n',
    ]);
    expect(bucket.proxy.seen).toEqual([]);
  });
});
