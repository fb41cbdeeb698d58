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

type About = { buckets: readonly string[]; region: string; account: string };

export async function openDoor(endpoint: string, policy: unknown, about: About): Promise<Door> {
  const proxy: FaultyProxy = await startFaultyProxy(endpoint);
  const { allowedBy } = createJudge(policy);
  const door: Door = { endpoint: proxy.endpoint, used: new Set(), denied: [] };
  proxy.fault = async (seen) => {
    const asked = toAsked(seen, about);
    const sids = asked.map(allowedBy);
    const refused = asked.filter((_, index) => sids[index] === undefined);
    door.denied.push(...refused.map(describeAsked));
    if (refused.length > 0) return { kind: 'answer', status: 403, ...denial(seen) };
    for (const sid of sids) door.used.add(String(sid));
    // Whoever may not list a whole bucket is not told what is missing in it.
    const isRead = asked.every(({ action }) => action === 's3:GetObject');
    const isHidden = isRead && (await isMissing(endpoint, seen.path));
    return isHidden ? { kind: 'answer', status: 403, ...denial(seen) } : undefined;
  };
  return door;
}

function describeAsked({ action, resource, keys = {} }: Asked): string {
  return [action, resource, ...Object.values(keys)].join(' ');
}

async function isMissing(endpoint: string, path: string): Promise<boolean> {
  return (await fetch(`${endpoint}${path}`, { method: 'HEAD' })).status === 404;
}

/** All that a request has to be allowed. */
function toAsked(seen: Seen, about: About): Asked[] {
  const { action, question = '', headers } = seen;
  if (action === undefined) return toS3(seen, about.buckets);
  const arn = (service: string, name: string): string =>
    `arn:aws:${service}:${about.region}:${about.account}:${name}`;
  if (headers['x-amz-target'] === undefined) {
    const form = new URLSearchParams(question);
    const resource = form.get('TopicArn') ?? arn('sns', form.get('Name') ?? '');
    const wanted = { 'sns:Protocol': form.get('Protocol'), 'sns:Endpoint': form.get('Endpoint') };
    const keys = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== null));
    return [{ action: `sns:${action}`, resource, keys: keys as Record<string, string> }];
  }
  const { QueueUrl, QueueName } = JSON.parse(question) as { QueueUrl?: string; QueueName?: string };
  const name = QueueName ?? QueueUrl?.slice(QueueUrl.lastIndexOf('/') + 1);
  const permission = action.replace(/Batch$/, '');
  return [{ action: `sqs:${permission}`, resource: name === undefined ? '*' : arn('sqs', name) }];
}

function toS3({ method, path, headers }: Seen, buckets: readonly string[]): Asked[] {
  const url = new URL(path, 'http://any');
  const [, bucket = '', ...rest] = decodeURIComponent(url.pathname).split('/');
  if (!buckets.includes(bucket)) throw new Error(`another bucket: ${path}`);
  const key = rest.join('/');
  const resource = `arn:aws:s3:::${bucket}`;
  if (key === '') return [{ resource, ...toBucketQuestion(method, url) }];
  const actions = toObjectActions(method, url.searchParams, headers['if-match'] !== undefined);
  return actions.map((action) => ({ action: `s3:${action}`, resource: `${resource}/${key}` }));
}

function toBucketQuestion(method: string, { searchParams, search }: URL): Omit<Asked, 'resource'> {
  if (method === 'HEAD') return { action: 's3:ListBucket' };
  // It has a prefix as well, and no condition key for it.
  if (method === 'GET' && searchParams.has('uploads')) return { action: 's3:ListBucketMultipartUploads' };
  if (method !== 'GET' || searchParams.get('list-type') !== '2')
    throw new Error(`no list: ${method} ${search}`);
  const prefix = searchParams.get('prefix');
  return { action: 's3:ListBucket', ...(prefix === null ? {} : { keys: { 's3:prefix': prefix } }) };
}

/** A condition on a version reads it. */
function toObjectActions(method: string, query: URLSearchParams, hasVersion: boolean): string[] {
  switch (method) {
    case 'GET':
    case 'HEAD':
      return ['GetObject'];
    case 'PUT':
      return hasVersion ? ['PutObject', 'GetObject'] : ['PutObject'];
    case 'POST':
      return ['PutObject'];
    case 'DELETE':
      return [query.has('uploadId') ? 'AbortMultipartUpload' : 'DeleteObject'];
    default:
      throw new Error(`no action of S3: ${method}`);
  }
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
