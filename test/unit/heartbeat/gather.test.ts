import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Paths } from '../../../src/lib/config/paths.ts';
import { gatherLiveness } from '../../../src/lib/heartbeat/gather.ts';
import { planLiveness } from '../../../src/lib/heartbeat/plan.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { makeTempDir } from '../../support/temp.ts';

const longAgo = '2026-06-04T03:00:00.000Z';
const beganAt = '2026-06-04T03:00:50.000Z';
const now = new Date('2026-06-04T03:08:00.000Z');
const intervals = { tickMs: 60_000, livenessMs: 30_000, statsMs: 60_000, edgeMs: 60_000 };

function writeRecord(stateDir: string, endedAt: string | null): void {
  const record = { concern: 'reconcile', runId: 'run-2', pid: 1, startedAt: beganAt, endedAt };
  const end = { outcome: null, exitCode: null, durationMs: null, lastGoodAt: longAgo };
  const text = JSON.stringify({ version: 1, ...record, ...end, lastEndedAt: endedAt ?? longAgo });
  writeFileSync(join(stateDir, 'runs/reconcile.json'), text);
}

it('takes a run that ends while its lock is looked for as one that has ended, not as killed', async () => {
  const stateDir = makeTempDir();
  mkdirSync(join(stateDir, 'runs'));
  writeRecord(stateDir, null);
  const paths = {
    stateDir,
    get locksDir() {
      writeRecord(stateDir, now.toISOString());
      return join(stateDir, 'none');
    },
  } as Paths;
  const clock = { ...systemClock, now: () => now };
  const facts = await gatherLiveness({ paths, clock, log: silentLog }, intervals, 'app');
  expect(planLiveness(facts)).toEqual({ alive: true });
});
