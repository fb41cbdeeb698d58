// The commands of jobs, as data.
import type { CommandSpec } from './command.ts';
import { apiOptions, yesOption } from './options.ts';

const idArgument = { name: '<job>', description: 'id of the job' };

export const jobCommands: readonly CommandSpec[] = [
  {
    path: 'claim',
    summary: 'go on with the jobs of this node, then take jobs for a window',
    options: [{ flags: '--window <seconds>', description: 'claim for so long; 0 asks once (default: 55)' }],
    locks: true,
    tellsConfig: true,
    load: () => import('./claim.ts'),
  },
  {
    path: 'job run',
    summary: 'bring one job to its end, for its unit',
    arguments: [idArgument],
    locks: true,
    hidden: true,
    load: () => import('./job-run.ts'),
  },
  {
    path: 'job list',
    summary: 'the open jobs of this node, and those that ended in the last day',
    options: [{ flags: '--all', description: 'with all ended ones that are still kept' }],
    load: () => import('./job-list.ts'),
  },
  {
    path: 'job show',
    summary: 'all that is known of one job, whether open or ended',
    arguments: [idArgument],
    load: () => import('./job-show.ts'),
  },
  {
    path: 'job logs',
    summary: 'the output of one job: its stdout to stdout, its stderr to stderr',
    arguments: [idArgument],
    options: [{ flags: '-f, --follow', description: 'go on as it is written, until the job has ended' }],
    load: () => import('./job-logs.ts'),
  },
  {
    path: 'job cancel',
    summary: 'ask for the end of one open job',
    arguments: [idArgument],
    options: [{ flags: '--reason <text>', description: 'why: `job show` tells it' }, yesOption],
    load: () => import('./job-cancel.ts'),
  },
  {
    path: 'api jobs',
    summary: "serve this node's API for jobs, on systemd's socket or an address",
    options: apiOptions,
    load: () => import('./api-jobs.ts'),
  },
];
