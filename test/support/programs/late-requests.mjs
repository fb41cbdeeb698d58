// Connections that wait with their request: `late-requests.mjs NAME CA DELAY_MS`, a new one each 100 ms until stdin ends. Over
// HTTP/1.1, since a server may close one of HTTP/2 at any time. Says `asking`, then of each that failed how, and the counts: without
// those that were held up here, since a server may close what was silent for five seconds.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';

const [name, caFile, delayMs] = process.argv.slice(2);
const ca = readFileSync(caFile);
const count = { served: 0, failed: 0, alerts: 0 };
let isEnough = false;
const tooLateMs = 4000;
process.stdin.resume().on('end', () => {
  isEnough = true;
});

/** What came back; `alert` where the handshake ended with that, `held up` where nothing was asked in time. */
function ask() {
  const startedAt = performance.now();
  return new Promise((resolve, reject) => {
    let isAsked = false;
    const isHeldUp = () => !isAsked && performance.now() - startedAt > tooLateMs;
    const socket = connect({
      host: '127.0.0.1',
      port: 443,
      servername: name,
      ca,
      ALPNProtocols: ['http/1.1'],
    });
    let text = '';
    socket.setTimeout(20_000, () => socket.destroy(new Error('no answer')));
    let isConnected = false;
    socket.on('secureConnect', async () => {
      isConnected = true;
      await sleep(Number(delayMs));
      if (isHeldUp()) return void socket.destroy();
      isAsked = true;
      socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`);
    });
    socket.on('data', (data) => {
      text += data;
    });
    socket.on('error', (error) => {
      // By its words: its code depends on whether it was read or met a write.
      if (!isConnected && error.message.includes('tlsv1 alert internal error')) resolve('alert');
      else if (isHeldUp()) resolve('held up');
      else reject(error);
    });
    socket.on('close', () => resolve(isHeldUp() ? 'held up' : text));
  });
}

async function askOnce() {
  const began = new Date().toISOString();
  try {
    const text = await ask();
    if (text.startsWith('HTTP/1.1 200 ')) count.served += 1;
    else if (text === 'alert') count.alerts += 1;
    else if (text !== 'held up') throw new Error(`it answered ${JSON.stringify(text)}`);
  } catch (error) {
    count.failed += 1;
    console.log(`late: connected ${began}, failed ${new Date().toISOString()}: ${error}`);
  }
}

console.log('asking');
const underWay = [];
while (!isEnough) {
  underWay.push(askOnce());
  await sleep(100);
}
await Promise.all(underWay);
console.log(`counts ${count.served} ${count.failed} ${count.alerts} 0`);
