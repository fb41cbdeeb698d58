// What is known of the concern that keeps the node: its record and its lock, looked at as one.
import type { ClusterConfig, Role } from '../config/config.ts';
import type { BaseContext } from '../context.ts';
import { isLockHeld } from '../lock/list-locks.ts';
import { readRun } from '../state/run-record.ts';
import type { LivenessFacts } from './plan.ts';

export async function gatherLiveness(
  { paths, clock, log }: Pick<BaseContext, 'paths' | 'clock' | 'log'>,
  intervals: ClusterConfig['intervals'],
  role: Role,
): Promise<LivenessFacts> {
  const concern = role === 'app' ? 'reconcile' : 'edge';
  const tickMs = role === 'app' ? intervals.tickMs : intervals.edgeMs;
  const now = clock.now();
  const record = await readRun({ paths, now, log }, concern);
  const lockHeld = record?.endedAt === null && (await isLockHeld(paths.locksDir, concern));
  if (record?.endedAt !== null || lockHeld) return { now, concern, tickMs, record, lockHeld };
  // Killed, or it has ended since its record was read: then that says so by now, as an end is written before the lock is let
  // go. Taken for killed, a long run would leave only the end of the one before it, which is too long ago.
  return { now, concern, tickMs, record: await readRun({ paths, now, log }, concern), lockHeld };
}
