// Sends requests, 100 a second, every other one on a kept connection: `send-requests.mjs URL`. Says `sending` once some have
// been answered; ends with its stdin, and says how many there were, how many were not answered 200, the longest wait, and how
// many had to be sent again: as any client of HTTP/1.1 does with a kept connection that was closed just as it was used, without a
// byte of an answer. On a connection of its own no request is sent twice.
import { Agent, request } from 'node:http';

const [url] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: 16 });
const [everyMs, answerMs] = [10, 20_000];
let [sent, failed, again, longestMs, stopped] = [0, 0, 0, 0, false];

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
    const ask = (isKept) => {
      let isAnswered = false;
      const outgoing = request(url, { agent: isKept ? agent : false }, (response) => {
        isAnswered = true;
        response.resume();
        response.on('end', () => settle(response.statusCode === 200 ? undefined : `${response.statusCode}`));
        response.on('error', (error) => settle(error.message));
      });
      outgoing.setTimeout(answerMs, () => outgoing.destroy(new Error('no answer')));
      outgoing.on('error', (error) => {
        const isClosed = ['ECONNRESET', 'EPIPE'].includes(error.code);
        if (!outgoing.reusedSocket || isAnswered || !isClosed) return settle(error.message);
        again += 1;
        ask(false);
      });
      outgoing.end();
    };
    ask(count % 2 === 0);
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
console.log(`sent ${sent} failed ${failed} longest ${Math.round(longestMs)} again ${again}`);
process.exit();
