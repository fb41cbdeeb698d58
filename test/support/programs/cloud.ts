// S3, SNS and SQS in one process, on a free port of the loopback or on a socket: `cloud.ts [SOCKET]`. Its first line is where
// it listens.
import { buildApp } from 'fauxqs';
import { SnsStore } from '../../../node_modules/fauxqs/dist/sns/snsStore.js';
import { SqsStore } from '../../../node_modules/fauxqs/dist/sqs/sqsStore.js';
import { StrictS3 } from '../strict-s3.ts';

const [socket] = process.argv.slice(2);
const s3Store = new StrictS3();
const app = buildApp({
  logger: false,
  defaultRegion: 'us-east-1',
  stores: { s3Store, sqsStore: new SqsStore(), snsStore: new SnsStore() },
});

app.addHook('preHandler', (request, reply, done) => {
  const query = request.query as Record<string, string | undefined>;
  const { bucket = '' } = (request.params ?? {}) as Record<string, string | undefined>;
  if (request.method === 'GET' && query['uploads'] !== undefined) {
    void reply.header('content-type', 'application/xml').send(s3Store.renderUploads(bucket, query));
    return;
  }
  s3Store.headers = request.headers;
  done();
});

const where = await app.listen(socket === undefined ? { host: '127.0.0.1', port: 0 } : { path: socket });
console.log(`listening on ${where}`);
// It ends with whoever has started it.
process.stdin.resume();
process.stdin.once('end', () => process.exit());
