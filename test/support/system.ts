// What the system tests share: where they can run, and what must hold of units whatever has happened.
import { describe, inject } from 'vitest';
import type { Host } from './host.ts';

/** Skipped only where no machine can be booted at all, which the set-up tells. */
export const describeHost = describe.skipIf(inject('hostProblem') !== '');

/** The timers of a node that runs services, in byte order. */
export const appTimers = [
  'reeve-backup-verify.timer',
  'reeve-backup.timer',
  'reeve-heartbeat.timer',
  'reeve-prune.timer',
  'reeve-reconcile.timer',
];

/**
 * Seconds until each of reeve's active timers fires next. A timer that counts from a run's end has no next time during
 * one, so it waits for the end; a timer that is dead never gets one.
 */
export async function nextRuns(host: Host): Promise<Record<string, number>> {
  return await host.waitFor('a next run of each timer', async () => {
    const listed = await host.output(['systemctl', 'list-timers', '-o', 'json', 'reeve*']);
    const timers = JSON.parse(listed) as { next: number; unit: string }[];
    const now = Date.now() * 1000;
    const entries = timers.map(({ unit, next }) => [unit, (next - now) / 1e6] as const);
    const dead = timers.filter(({ next }) => !(next > 0 && next < Number.MAX_SAFE_INTEGER));
    if (dead.length > 0) throw new Error(dead.map(({ unit }) => unit).join(' '));
    return Object.fromEntries(entries.toSorted(([left], [right]) => (left < right ? -1 : 1)));
  });
}

/** No process of the service is there, so that the next one begins after this. */
export async function whenIdle(host: Host, service: string): Promise<void> {
  await host.waitFor(`${service} to end`, async () => {
    const { ActiveState } = await host.show(service, 'ActiveState');
    return ActiveState === 'inactive' || ActiveState === 'failed';
  });
}

/** A run that has met a slow machine fails once, and is well with the next: a unit that stays failed is what is meant. */
export async function expectNoneFailed(host: Host): Promise<void> {
  await host.waitFor('no unit to have failed', async () => {
    const failed = await host.output(['systemctl', '--failed', '--quiet', '--no-legend']);
    if (failed !== '') throw new Error(failed);
    return true;
  });
}

/** What was measured: scripts/test shows these lines. */
export function tellFigure(text: string): void {
  console.log(`figure: ${text}`);
}
