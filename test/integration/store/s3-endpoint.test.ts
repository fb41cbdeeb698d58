// What is told where `endpoint` and the service behind it do not fit.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openSecrets } from '../../../src/lib/secrets/secrets.ts';
import { openS3Store } from '../../../src/lib/store/s3.ts';
import { makeTempDir } from '../../support/temp.ts';

async function listen(server: Server): Promise<string> {
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => void server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const startPlain = (status: number, body: string): Promise<string> =>
  listen(createServer((_request, response) => void response.writeHead(status).end(body)));

function startTls(name: string): Promise<string> {
  const directory = makeTempDir();
  const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
  const words = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const about = ['-subj', '/CN=test', '-addext', `subjectAltName=${name}`, '-days', '2'];
  execFileSync('openssl', [...words, ...about, '-keyout', key, '-out', cert], { stdio: 'ignore' });
  const files = { key: readFileSync(key), cert: readFileSync(cert) };
  return listen(createTlsServer(files, (_request, response) => void response.end()));
}

Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' });

async function failureAt(endpoint: string): Promise<unknown> {
  const store = openS3Store({ bucket: 'state', prefix: '', place: { region: 'us-east-1', endpoint } });
  return await store.list('nodes/').catch((error: unknown) => error);
}

const told = (cause: string) => ({
  exitCode: 69,
  message: `cannot list "nodes/" in store "s3://state": ${cause}`,
});

describe('an endpoint', () => {
  it('that speaks no TLS is told so in one sentence (R61)', async () => {
    const origin = `https://${await startPlain(200, '')}`;
    expect(await failureAt(origin)).toMatchObject(
      told(`${origin} and this machine find no TLS in common (EPROTO): does it speak http://?`),
    );
  });

  it('that speaks nothing but TLS is asked after (R61)', async () => {
    const origin = `http://${await startTls('IP:127.0.0.1')}`;
    expect(await failureAt(origin)).toMatchObject(
      told(`${origin} hangs up without an answer (ECONNRESET): does it speak https://?`),
    );
  });

  it('whose certificate nobody has signed is not trusted, and how it would be is said', async () => {
    const origin = `https://${await startTls('IP:127.0.0.1')}`;
    expect(await failureAt(origin)).toMatchObject({
      ...{ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
      ...told(
        `the certificate of ${origin} is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT): NODE_EXTRA_CA_CERTS names the file of its authority`,
      ),
    });
  });

  it('that answers in plain words is named (R61)', async () => {
    const origin = `http://${await startPlain(400, 'Client sent an HTTP request to an HTTPS server.')}`;
    expect(await failureAt(origin)).toMatchObject({
      ...{ code: 'answer' },
      ...told(`${origin} answers 400, and not as the service that is asked for: is the endpoint right?`),
    });
  });

  it('that has no SSM is named by the secrets that are asked for there', async () => {
    const refusal = '<?xml version="1.0"?><Error><Code>InvalidRequest</Code></Error>';
    const endpoint = `http://${await startPlain(400, refusal)}`;
    const secrets = await openSecrets('ssm', { clusterId: 'default', region: 'us-east-1', endpoint });
    const name = '/launch-pad/default/blog/web/KEY';
    await expect(secrets.resolve([{ name: 'KEY', ssm: name }])).rejects.toMatchObject({
      ...{ exitCode: 69 },
      message: `cannot resolve secrets: KEY ("${name}") cannot be read: ${endpoint} answers 400, and not as the service that is asked for: is the endpoint right?`,
    });
  });
});
