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

/**
 * Of the others these measure what a promise is about: they run by themselves, on a machine that does nothing else. All that is left
 * runs in two lanes, one file at a time in each: what bounds a time by seconds bears one neighbour.
 */
const measured = [
  'api-commands/sweep',
  'backup/figures',
  'budget/budget',
  'claim/idle',
  'claim/rhythm',
  'claim/thousand',
  'commands/command-run',
  'edge/behaviour',
  'edge/many',
  'heartbeat/commands',
  'heartbeat/jobs',
  'job/cancelled',
  'job/cancelled-early',
  'job/results',
  'notify/deadline',
  'notify/fleet',
  'notify/latency',
  'proxy/throughput',
  'release/fleet',
  'release/turn',
  'rsync-pull/cost',
  'store/s3-start',
];

/**
 * Folders of the second lane: none of them has replicas, whose ports follow from the names of their services and so would be the same
 * in both.
 */
const secondLane = [
  'api-commands',
  'commands',
  'completion',
  'edge',
  'exec',
  'failure',
  'faults',
  'http',
  'jobs',
  'ploy',
  'proxy',
  'runner',
  'server',
  'state',
];
const namesOfFirstLane = ['edge/rollout'];

/** How many at a time. */
export const workers = 3;

const root = resolve(import.meta.dirname, '../..');
const fileOf = (name: string): string => `test/integration/${name}.test.ts`;
const find = (pattern: string): string[] => globSync(pattern, { cwd: root }).sort();

const files = find('test/integration/**/*.test.ts');
const alone = new Set(namesAlone.map(fileOf));

/** Paths from the checkout. */
export const filesMeasured = measured.map(fileOf);
export const filesBeside = find(`test/integration/{${folders.join()}}/**/*.test.ts`).filter(
  (file) => !alone.has(file) && !filesMeasured.includes(file),
);
const rest = files.filter((file) => !filesBeside.includes(file) && !filesMeasured.includes(file));
const isSecond = (file: string): boolean =>
  secondLane.some((folder) => file.startsWith(`test/integration/${folder}/`)) &&
  !namesOfFirstLane.some((name) => file === fileOf(name));
export const filesInSecondLane = rest.filter(isSecond);
export const filesInFirstLane = rest.filter((file) => !isSecond(file));

/** Of the booted machines, which have nothing of each other's: those that count milliseconds. The others run two at a time. */
export const systemFilesMeasured = ['fresh', 'idle', 'listen'].map((name) => `test/system/${name}.test.ts`);
export const systemFilesBeside = find('test/system/*.test.ts').filter(
  (file) => !systemFilesMeasured.includes(file),
);
