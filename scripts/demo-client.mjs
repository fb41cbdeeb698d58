// A client for the demo: asks the backends that a node publishes for its edge, one after another and without a pause,
// as an edge would. Ends on SIGTERM and says how it went.
//
//   node scripts/demo-client.mjs SHARD
import { readFileSync } from 'node:fs';
import { get } from 'node:http';

const [shard] = process.argv.slice(2);
const answers = new Map();
const failures = [];
let stopping = false;
process.on('SIGTERM', () => {
  stopping = true;
});

for (let turn = 0; !stopping; turn += 1) {
  // The file is read anew each time: an edge polls it, and both wait for each other when a replica leaves.
  const { backends } = JSON.parse(readFileSync(shard, 'utf8'));
  const { hostPort } = backends[turn % backends.length];
  try {
    const text = await ask(hostPort);
    const version = /^web (\S+)/.exec(text)?.[1] ?? text;
    answers.set(version, (answers.get(version) ?? 0) + 1);
  } catch (error) {
    failures.push(`port ${hostPort}: ${error.message}`);
  }
  await new Promise((resolve) => setTimeout(resolve, 5));
}

const total = [...answers.values()].reduce((sum, count) => sum + count, failures.length);
const versions = [...answers].map(([version, count]) => `${count} answered by ${version}`);
console.log([`${total} requests, ${failures.length} failed`, ...versions].join(', '));
for (const failure of failures.slice(0, 5)) console.log(failure);
process.exitCode = failures.length === 0 && total > 0 ? 0 : 1;

function ask(port) {
  return new Promise((resolve, reject) => {
    const request = get({ host: '127.0.0.1', port, path: '/', agent: false, timeout: 5000 }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        body += chunk;
      });
      response.on('error', reject).on('end', () => {
        if (response.statusCode === 200) resolve(body);
        else reject(new Error(`got ${response.statusCode}`));
      });
    });
    request.on('timeout', () => request.destroy(new Error('no answer within 5 s'))).on('error', reject);
  });
}
