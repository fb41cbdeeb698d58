// The commands of backups, as data.
import type { CommandSpec, OptionSpec } from './command.ts';
import { dryRunOption, serviceOption, yesOption } from './options.ts';

const setOption: OptionSpec = {
  flags: '--set <stamp>',
  description: 'of this set instead, as 2026-06-04T03-00-00Z',
};

export const backupCommands: readonly CommandSpec[] = [
  {
    path: 'backup',
    summary: 'dump the databases whose backup is due',
    options: [{ flags: '--now', description: 'a set of this moment, beside the schedule' }, serviceOption],
    locks: true,
    load: () => import('./backup.ts'),
  },
  {
    path: 'backup list',
    summary: 'what there is of each database, how old it is and how far it is proven',
    options: [serviceOption],
    load: () => import('./backup-list.ts'),
  },
  {
    path: 'backup prune',
    summary: 'remove what retention lets go of (with --dry-run, exit 2 if anything)',
    options: [dryRunOption, serviceOption],
    locks: true,
    load: () => import('./backup-prune.ts'),
  },
  {
    path: 'backup verify',
    summary: "read each service's newest backups to their end (exit 1 if anything is wrong)",
    options: [
      { flags: '--restore', description: 'restore them as well, each into a server of its own' },
      serviceOption,
      setOption,
    ],
    locks: true,
    load: () => import('./backup-verify.ts'),
  },
  {
    path: 'backup restore',
    summary: 'restore a dump into a database of the running container',
    arguments: [
      { name: '<project/service>', description: 'the service' },
      { name: '<database>', description: 'whose dump; one that looks like an option comes after --' },
    ],
    options: [
      {
        flags: '--to <name>',
        description: 'into this database, made where it is missing (default: its own)',
      },
      setOption,
      { flags: '--force', description: 'replace a database that is not empty' },
      { flags: '--globals', description: 'make the roles that are missing first' },
      yesOption,
    ],
    locks: true,
    load: () => import('./backup-restore.ts'),
  },
];
