// The commands of jobs, as data.
import type { CommandSpec } from './command.ts';

export const jobCommands: readonly CommandSpec[] = [
  {
    path: 'claim',
    summary: 'go on with the jobs of this node, then take jobs for a window',
    options: [{ flags: '--window <seconds>', description: 'so long; 0 asks once (default 55)' }],
    locks: true,
    load: () => import('./claim.ts'),
  },
  {
    path: 'job run',
    summary: 'bring one job to its end, for its unit',
    arguments: [{ name: '<job>', description: 'id of the job' }],
    locks: true,
    hidden: true,
    load: () => import('./job-run.ts'),
  },
  {
    path: 'api jobs',
    summary: "serve this node's API for jobs, on systemd's socket or an address",
    options: [
      { flags: '--listen <address>', description: 'HOST:PORT or :PORT, until it is stopped' },
      {
        flags: '--idle <seconds>',
        description: 'end when nobody has been connected for so long (default: 60)',
      },
    ],
    load: () => import('./api-jobs.ts'),
  },
];
