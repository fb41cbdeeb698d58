// A client for the demo: asks for a domain through the edge, one request after another and without a pause, each second one
// on a connection of its own. Ends on SIGTERM and says how it went.
//
//   node scripts/demo-client.mjs DOMAIN PORT ROOT_CERTIFICATE
import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:https';

const [domain, port, root] = process.argv.slice(2);
const ca = readFileSync(root, 'utf8');
const kept = new Agent({ keepAlive: true, maxSockets: 1 });
const answers = new Map();
const failures = [];
let stopping = false;
process.on('SIGTERM', () => {
  stopping = true;
});

// A demo that was killed does not stop it.
const parent = process.ppid;
for (let turn = 0; !stopping && process.ppid === parent; turn += 1) {
  try {
    const text = await ask(turn % 2 === 0 ? kept : false);
    const version = /^web (\S+)/.exec(text)?.[1] ?? text;
    answers.set(version, (answers.get(version) ?? 0) + 1);
  } catch (error) {
    failures.push(error.message);
  }
  await new Promise((resolve) => setTimeout(resolve, 5));
}

kept.destroy();
const total = [...answers.values()].reduce((sum, count) => sum + count, failures.length);
const versions = [...answers].map(([version, count]) => `${count} answered by ${version}`);
console.log([`${total} requests, ${failures.length} failed`, ...versions].join(', '));
for (const failure of failures.slice(0, 5)) console.log(failure);
process.exitCode = failures.length === 0 && total > 0 ? 0 : 1;

function ask(agent) {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, servername: domain, headers: { host: domain }, ca, agent };
    const request = get({ ...options, path: '/', timeout: 5000 }, (response) => {
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
