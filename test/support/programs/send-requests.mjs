// Sends requests, 100 a second, every other one on a kept connection: `send-requests.mjs URL`. Says `sending` once some have
// been answered; ends with its stdin, and says how many there were, how many were not answered 200, and the longest wait.
import { Agent, request } from 'node:http';

const [url] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: 16 });
const [everyMs, answerMs] = [10, 20_000];
let [sent, failed, longestMs, stopped] = [0, 0, 0, false];

const send = (count) =>
  new Promise((resolve) => {
    const startedAt = performance.now();
    const settle = (problem) => {
      sent += 1;
      failed += problem === undefined ? 0 : 1;
      longestMs = Math.max(longestMs, performance.now() - startedAt);
      if (problem !== undefined && failed < 10) console.error(problem);
      if (sent === 20) console.log('sending');
      resolve();
    };
    const outgoing = request(url, { agent: count % 2 === 0 ? agent : false }, (response) => {
      response.resume();
      response.on('end', () => settle(response.statusCode === 200 ? undefined : `${response.statusCode}`));
      response.on('error', (error) => settle(error.message));
    });
    outgoing.setTimeout(answerMs, () => outgoing.destroy(new Error('no answer')));
    outgoing.on('error', (error) => settle(error.message));
    outgoing.end();
  });

process.stdin.on('end', () => {
  stopped = true;
});
process.stdin.resume();
const underWay = new Set();
for (let count = 0; !stopped; count += 1) {
  const one = send(count).finally(() => underWay.delete(one));
  underWay.add(one);
  await new Promise((tick) => setTimeout(tick, everyMs));
}
await Promise.all(underWay);
console.log(`sent ${sent} failed ${failed} longest ${Math.round(longestMs)}`);
process.exit();
