// The store of an installed machine as a test sees it: a directory there, or, with REEVE_TEST_STORE=s3, a bucket in an
// emulator beside it, which the machine reaches at its own loopback as if it were a service far away.
import { request } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { Host } from './host.ts';
import { startNodeProgram } from './programs.ts';

/** Tests that are about the directory itself leave the bucket to others. */
export const isInBucket = process.env['REEVE_TEST_STORE'] === 's3';

const directory = '/var/lib/reeve/store';
const bucket = 'state';
export const endpoint = 'http://127.0.0.1:4566';
const socketName = 'cloud.sock';

/** Keys of the section `cluster` that name the store. */
export const storeSettings = isInBucket
  ? { store: `s3://${bucket}`, region: 'us-east-1', endpoint }
  : { store: `file://${directory}` };

/** What a person who runs reeve on such a machine has in the environment. */
export const storeEnv: Readonly<Record<string, string>> = isInBucket
  ? { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test', AWS_ENDPOINT_URL: endpoint }
  : {};

export type InstalledStore = {
  read(key: string): Promise<string>;
  /** All at once, as every writer does it. */
  write(key: string, text: string): Promise<void>;
  /** Milliseconds since 1970. A bucket tells whole seconds, so there it is the document's own word. */
  writtenAt(key: string): Promise<number>;
};

export function describeStore(host: Host): InstalledStore {
  return isInBucket ? describeBucket(host) : describeDirectory(host);
}

/** Nothing for a directory, which reeve makes. */
export async function prepareStore(host: Host): Promise<void> {
  if (!isInBucket) return;
  await prepareCloud(host);
  await send(host, 'PUT', '');
}

/** An emulator of S3, SNS and SQS, at the machine's own loopback. */
export async function prepareCloud(host: Host): Promise<void> {
  const program = startNodeProgram('cloud.ts', [join(host.shared, socketName)]);
  await program.waitFor('listening on ');
  for (const [file, text] of Object.entries(units)) await host.write(`/etc/systemd/system/${file}`, text);
  await host.output(['systemctl', 'enable', '--now', 'cloud.socket']);
}

const units = {
  'cloud.socket': '[Socket]\nListenStream=127.0.0.1:4566\n[Install]\nWantedBy=sockets.target\n',
  'cloud.service': `[Service]\nExecStart=/lib/systemd/systemd-socket-proxyd /srv/shared/${socketName}\n`,
  // As on a machine that is not in the cloud: there, credentials come to services like this.
  'reeve-.service.d/60-credentials.conf':
    '[Service]\nEnvironment=AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test\n',
};

function describeBucket(host: Host): InstalledStore {
  const read = async (key: string): Promise<string> => await send(host, 'GET', key);
  return {
    read,
    write: async (key, text) => {
      await send(host, 'PUT', key, text);
    },
    writtenAt: async (key) => Date.parse(JSON.parse(await read(key)).updatedAt),
  };
}

function describeDirectory(host: Host): InstalledStore {
  const place = (key: string): string => `${directory}/${key}`;
  return {
    read: (key) => host.read(place(key)),
    write: async (key, text) => {
      await host.write(`${place(key)}.tmp`, text);
      await host.output(['mv', `${place(key)}.tmp`, place(key)]);
    },
    writtenAt: async (key) => Number(await host.output(['stat', '-c', '%.6Y', place(key)])) * 1000,
  };
}

async function send(host: Host, method: string, key: string, body = ''): Promise<string> {
  return await ask(host, { method, path: `/${bucket}/${key}`, headers: {} }, body);
}

/** An action of SQS, of somebody outside of the machine. */
export async function askQueues(host: Host, action: string, asking: object): Promise<unknown> {
  const headers = { 'content-type': 'application/x-amz-json-1.0', 'x-amz-target': `AmazonSQS.${action}` };
  return JSON.parse(await ask(host, { method: 'POST', path: '/', headers }, JSON.stringify(asking)));
}

/** A cluster's topic, to which the queue is subscribed as a deploy does it. */
export async function makeTopic(host: Host, name: string, queueName: string): Promise<string> {
  const TopicArn = `arn:aws:sns:us-east-1:000000000000:${name}`;
  await askTopics(host, { Action: 'CreateTopic', Name: name });
  await askTopics(host, {
    ...{ Action: 'Subscribe', TopicArn, Protocol: 'sqs' },
    Endpoint: `arn:aws:sqs:us-east-1:000000000000:${queueName}`,
    ...{ 'Attributes.entry.1.key': 'RawMessageDelivery', 'Attributes.entry.1.value': 'true' },
  });
  return TopicArn;
}

export async function publish(host: Host, TopicArn: string): Promise<void> {
  await askTopics(host, { Action: 'Publish', TopicArn, Message: 'x' });
}

async function askTopics(host: Host, fields: Readonly<Record<string, string>>): Promise<void> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  await ask(host, { method: 'POST', path: '/', headers }, new URLSearchParams(fields).toString());
}

type Asking = { method: string; path: string; headers: Readonly<Record<string, string>> };

async function ask(host: Host, { method, path, headers }: Asking, body: string): Promise<string> {
  const socketPath = join(host.shared, socketName);
  return await new Promise((resolve, reject) => {
    const outgoing = request({ socketPath, method, path, headers }, (answer) => {
      buffer(answer).then((bytes) => {
        if (answer.statusCode === 200) resolve(bytes.toString());
        else reject(new Error(`${method} ${path}: ${answer.statusCode} ${bytes}`));
      }, reject);
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}
