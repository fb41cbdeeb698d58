// Which integration tests run beside others. Each worker has an engine and ports of its own, so that they share the two cores of
// a machine and nothing else; so what measures time runs alone, and what keeps both cores busy by itself.
import { globSync } from 'node:fs';
import { resolve } from 'node:path';

/** Folders of test/integration whose tests mostly wait, for one process after another. */
const folders = [
  'action',
  'api-commands',
  'api-jobs',
  'backup',
  'bootstrap',
  'claim',
  'commands',
  'control-plane',
  'deploy-action',
  'deploy-service',
  'docker',
  'doctor',
  'iam',
  'job',
  'lock',
  'notify',
  'reconcile',
  'release',
  'rsync',
  'rsync-pull',
  'runner',
  'secrets',
  'status',
  'store',
  'systemd',
];

/** Files in them that bound a time, or measure how long something takes or how much it needs. */
export const namesAlone = [
  'api-commands/delete',
  'api-commands/jobs',
  'api-commands/probe',
  'api-commands/relay',
  'api-commands/sweep',
  'api-jobs/broken',
  'backup/figures',
  'backup/snapshot',
  'bootstrap/retried',
  'claim/chaos',
  'claim/deliveries',
  'claim/idle',
  'claim/rhythm',
  'claim/stopped',
  'claim/thousand',
  'claim/window',
  'commands/command-run',
  'commands/crashes',
  'control-plane/renewed',
  'deploy-action/deploy-action',
  'deploy-action/late',
  'deploy-action/refusals',
  'deploy-service/verify',
  'docker/containers',
  'doctor/doctor',
  'job/cancelled',
  'job/cancelled-early',
  'job/login',
  'job/logs',
  'job/results',
  'job/run',
  'job/usage',
  'job/view/list',
  'job/view/live',
  'job/view/logs',
  'notify/deadline',
  'notify/deploy-faults',
  'notify/fleet',
  'notify/latency',
  'notify/listen',
  'notify/listen-faults',
  'reconcile/acknowledgement',
  'reconcile/failure',
  'reconcile/interruption',
  'reconcile/job',
  'reconcile/run-interruption',
  'reconcile/tick',
  'release/fleet',
  'release/turn',
  'rsync-pull/cost',
  'rsync-pull/hostile',
  'rsync/run',
  'runner/run',
  'runner/user',
  'store/s3-size',
  'store/s3-start',
  'store/s3-streams',
];

/** How many at a time. */
export const workers = 3;

const root = resolve(import.meta.dirname, '../..');
const isAlone = (file: string): boolean =>
  namesAlone.some((name) => file === `test/integration/${name}.test.ts`);

/** Paths from the checkout. */
export const filesBeside = globSync(`test/integration/{${folders.join()}}/**/*.test.ts`, { cwd: root })
  .filter((file) => !isAlone(file))
  .sort();
