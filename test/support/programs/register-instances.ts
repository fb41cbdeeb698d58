// Registers instances with the node's proxy in turn, each at its next port: `register-instances.ts RUN NAME=PORT,PORT ...`. Ends
// with its stdin, and says how many registrations there were.
import { resolvePaths } from '../../../src/lib/config/paths.ts';
import { registerInstance } from '../../../src/lib/proxy/set.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { systemClock } from '../../../src/lib/time.ts';

const [runDir = '', ...words] = process.argv.slice(2);
const instances = words.map((word) => {
  const [name = '', ports = ''] = word.split('=');
  return { name, ports: ports.split(',').map(Number) };
});
const stop = new AbortController();
process.stdin.on('end', () => stop.abort()).resume();
const ctx = {
  ...{ paths: resolvePaths({}, { REEVE_RUN: runDir }), clock: systemClock, log: silentLog, runId: 'test' },
  ...{ command: 'proxy test', signal: new AbortController().signal },
};
let count = 0;
for (; !stop.signal.aborted; count += 1) {
  const { name, ports } = instances[count % instances.length] as (typeof instances)[number];
  await registerInstance(ctx, name, ports[Math.floor(count / instances.length) % ports.length] as number);
  if (count === 0) console.log('begun');
}
console.log(`registered ${count}`);
