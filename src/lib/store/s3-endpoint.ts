// Where a bucket's requests go. The configuration is one who says it; the environment (`AWS_ENDPOINT_URL_S3`) and the shared
// file of AWS's own tools are others, so that the SDK is asked.
import { HeadBucketCommand } from '@aws-sdk/client-s3';
import type { Bucket } from './s3-client.ts';

export type Endpoint = {
  /** Without the bucket's name, a path and credentials. */
  origin: string;
  isAws: boolean;
};

/** What names of AWS's hosts end in, in each of its partitions. */
const awsDomains = [
  ...['amazonaws.com', 'api.aws', 'amazonaws.com.cn', 'api.amazonwebservices.com.cn'],
  ...['amazonaws.eu', 'api.amazonwebservices.eu', 'c2s.ic.gov', 'api.aws.ic.gov', 'sc2s.sgov.gov'],
  ...['api.aws.scloud', 'cloud.adc-e.uk', 'api.cloud-aws.adc-e.uk', 'csp.hci.ic.gov', 'api.aws.hci.ic.gov'],
];

type HttpRequest = { protocol: string; hostname: string; port?: number; path: string };

/** Asks nobody: it makes a request and does not send it. What is read for that, each request reads, and the SDK keeps it. */
export async function findEndpoint({ client, name }: Pick<Bucket, 'client' | 'name'>): Promise<Endpoint> {
  const command = new HeadBucketCommand({ Bucket: name });
  const requests: HttpRequest[] = [];
  command.middlewareStack.addRelativeTo(
    () => (made: unknown) => {
      requests.push((made as { request: HttpRequest }).request);
      return Promise.resolve({ output: { $metadata: {} }, response: undefined });
    },
    { relation: 'after', toMiddleware: 'serializerMiddleware', name: 'reeveKeepRequest' },
  );
  await client.send(command);
  const [{ protocol, hostname, port, path }] = requests as [HttpRequest];
  const isByPath = path.split('/').includes(name);
  const host = isByPath || !hostname.startsWith(`${name}.`) ? hostname : hostname.slice(name.length + 1);
  return {
    origin: `${protocol}//${host}${port === undefined ? '' : `:${port}`}`,
    isAws: isAwsHost(hostname),
  };
}

function isAwsHost(hostname: string): boolean {
  const name = hostname.toLowerCase();
  return awsDomains.some((domain) => name.endsWith(`.${domain}`));
}
