// The commands of jobs, as data.
import type { CommandSpec } from './command.ts';

export const jobCommands: readonly CommandSpec[] = [
  {
    path: 'job run',
    summary: 'bring one job to its end, for its unit',
    arguments: [{ name: '<job>', description: 'id of the job' }],
    locks: true,
    hidden: true,
    load: () => import('./job-run.ts'),
  },
];
