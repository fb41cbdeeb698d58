// One side of a race for slots: `race-slots.ts claim|open ROOT ROUNDS`. Whoever claims prints how often more was taken than there is
// and how often it had a slot; whoever opens goes on until its input ends, and prints how many jobs it opened. Each says when it is
// ready, and begins when it is told to.
import { once } from 'node:events';
import { join } from 'node:path';
import { closeJob, listEndedJobs, listOpenJobs } from '../../../src/lib/jobs/book.ts';
import { giveSlotBack, openInSlot, reserveSlot } from '../../../src/lib/jobs/slots.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { systemClock } from '../../../src/lib/time.ts';

const [side, root = '', rounds = '0'] = process.argv.slice(2);
const signal = new AbortController().signal;
const paths = { stateDir: join(root, 'state'), runDir: join(root, 'run'), locksDir: join(root, 'run/locks') };
const ctx = {
  ...{ paths, signal, clock: systemClock, log: silentLog, runId: 'race', command: 'race' },
} as unknown as Parameters<typeof openInSlot>[0];

async function claim(): Promise<void> {
  process.stdin.destroy();
  let taken = 0;
  let tooMany = 0;
  for (let round = 0; round < Number(rounds) || !(await isRaced()); round += 1) {
    if (!(await reserveSlot(ctx, 1))) continue;
    taken += 1;
    let open = 0;
    for (let looks = 0; looks < 3; looks += 1) open = Math.max(open, (await listOpenJobs(ctx)).length);
    if (open > 0) tooMany += 1;
    giveSlotBack(ctx);
  }
  console.log(JSON.stringify({ taken, tooMany }));
}

/** Whoever opens has had many turns as well, however slow the machine is. */
async function isRaced(): Promise<boolean> {
  return (await listEndedJobs(ctx)).length > 50;
}

async function open(): Promise<void> {
  let isOver = false;
  process.stdin.resume();
  process.stdin.once('end', () => {
    isOver = true;
  });
  let opened = 0;
  for (let round = 0; !isOver; round += 1) {
    const jobId = `job-${round}`;
    const about = { source: 'api', claimedAt: new Date().toISOString(), runId: 'race', jobId } as const;
    if ((await openInSlot(ctx, about, 1)) !== 'opened') continue;
    opened += 1;
    await closeJob(ctx, jobId);
  }
  console.log(JSON.stringify({ opened }));
}

console.log('ready');
await once(process.stdin, 'data');
await (side === 'claim' ? claim() : open());
