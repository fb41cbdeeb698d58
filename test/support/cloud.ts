// S3, SNS and SQS of a test: an emulator in a process of its own, so that programs that a test waits for can reach it.

import { onTestFinished } from './after-test.ts';
import { type Program, startNodeProgram } from './programs.ts';

export type Cloud = {
  readonly endpoint: string;
  /** What a program needs to reach it: credentials, region and endpoint. */
  readonly env: Readonly<Record<string, string>>;
  stop(): Promise<void>;
};

export type CloudOptions = {
  buckets?: readonly string[];
  /** Tests that share one pass their own hook. */
  whenFinished?: (clean: () => Promise<void>) => void;
};

export const cloudRegion = 'us-east-1';

export async function startCloud({
  buckets = ['state'],
  whenFinished = onTestFinished,
}: CloudOptions = {}): Promise<Cloud> {
  const program = startNodeProgram('cloud.ts', []);
  const stop = async (): Promise<void> => {
    program.child.stdin.end();
    await program.ended;
  };
  whenFinished(stop);
  const endpoint = await waitForEndpoint(program);
  for (const bucket of buckets) await makeBucket(endpoint, bucket);
  return { endpoint, env: cloudEnv(endpoint), stop };
}

function cloudEnv(endpoint: string): Record<string, string> {
  return {
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
    AWS_REGION: cloudRegion,
    AWS_ENDPOINT_URL: endpoint,
  };
}

export async function makeBucket(endpoint: string, bucket: string): Promise<void> {
  const answer = await fetch(`${endpoint}/${bucket}`, { method: 'PUT' });
  if (!answer.ok) throw new Error(`cannot make bucket ${bucket}: ${answer.status}`);
}

async function waitForEndpoint(program: Program): Promise<string> {
  let text = '';
  program.child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  await program.waitFor('listening on ');
  const endpoint = /listening on (http:\S+)/.exec(text)?.[1];
  if (endpoint === undefined) throw new Error(`the emulator has said ${JSON.stringify(text)}`);
  return endpoint;
}
