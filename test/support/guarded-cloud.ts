// The emulated cloud behind a door for each role: what the role's policy does not allow is denied there, as AWS denies it. What
// was asked is kept, so that a test can tell what a policy allows in vain.
import { type FaultyProxy, type Seen, startFaultyProxy } from './faulty-proxy.ts';
import { type Asked, createJudge } from './identity-policy.ts';

export type Door = {
  readonly endpoint: string;
  /** Sids of the statements that were needed so far. */
  readonly used: Set<string>;
  readonly denied: string[];
};

export async function openDoor(
  endpoint: string,
  policy: unknown,
  about: { bucket: string; region: string; account: string },
): Promise<Door> {
  const proxy: FaultyProxy = await startFaultyProxy(endpoint);
  const { allowedBy } = createJudge(policy);
  const door: Door = { endpoint: proxy.endpoint, used: new Set(), denied: [] };
  proxy.fault = async (seen) => {
    const asked = toAsked(seen, about);
    // A write that shows a service of others to keep its word: AWS is not asked for it.
    if (asked.resource.includes('/.condition-')) return undefined;
    const sid = allowedBy(asked);
    if (sid !== undefined) {
      door.used.add(sid);
      // Whoever may not list a whole bucket is not told what is missing in it.
      const isHidden = asked.action === 's3:GetObject' && (await isMissing(endpoint, seen.path));
      return isHidden ? { kind: 'answer', status: 403, ...denial(seen) } : undefined;
    }
    door.denied.push(`${asked.action} ${asked.resource} ${asked.prefix ?? ''}`.trim());
    return { kind: 'answer', status: 403, ...denial(seen) };
  };
  return door;
}

async function isMissing(endpoint: string, path: string): Promise<boolean> {
  return (await fetch(`${endpoint}${path}`, { method: 'HEAD' })).status === 404;
}

function toAsked(seen: Seen, about: { bucket: string; region: string; account: string }): Asked {
  const { action, question = '', headers } = seen;
  if (action === undefined) return toS3(seen, about.bucket);
  const arn = (service: string, name: string): string =>
    `arn:aws:${service}:${about.region}:${about.account}:${name}`;
  if (headers['x-amz-target'] === undefined) {
    const form = new URLSearchParams(question);
    return { action: `sns:${action}`, resource: form.get('TopicArn') ?? arn('sns', form.get('Name') ?? '') };
  }
  const { QueueUrl, QueueName } = JSON.parse(question) as { QueueUrl?: string; QueueName?: string };
  const name = QueueName ?? QueueUrl?.slice(QueueUrl.lastIndexOf('/') + 1);
  const permission = action.replace(/Batch$/, '');
  return { action: `sqs:${permission}`, resource: name === undefined ? '*' : arn('sqs', name) };
}

const objectActions: Readonly<Record<string, string>> = {
  GET: 's3:GetObject',
  HEAD: 's3:GetObject',
  PUT: 's3:PutObject',
  DELETE: 's3:DeleteObject',
};

function toS3({ method, path }: Seen, bucket: string): Asked {
  const url = new URL(path, 'http://any');
  const [, first, ...rest] = decodeURIComponent(url.pathname).split('/');
  if (first !== bucket) throw new Error(`another bucket: ${path}`);
  const key = rest.join('/');
  const resource = `arn:aws:s3:::${bucket}`;
  if (key !== '') return { action: objectActions[method] ?? method, resource: `${resource}/${key}` };
  if (url.searchParams.get('list-type') !== '2') throw new Error(`no list: ${method} ${path}`);
  const prefix = url.searchParams.get('prefix');
  return { action: 's3:ListBucket', resource, ...(prefix === null ? {} : { prefix }) };
}

function denial({ action, headers }: Seen): { headers: Record<string, string>; body: string } {
  if (action !== undefined && headers['x-amz-target'] !== undefined) {
    const body = JSON.stringify({ __type: 'com.amazon.coral.service#AccessDeniedException', message: 'no' });
    return { headers: { 'content-type': 'application/x-amz-json-1.0' }, body };
  }
  const error = '<Error><Code>AccessDenied</Code><Message>no</Message></Error>';
  const wrapped = action === undefined ? error : `<ErrorResponse>${error}</ErrorResponse>`;
  return { headers: { 'content-type': 'application/xml' }, body: `<?xml version="1.0"?>${wrapped}` };
}
