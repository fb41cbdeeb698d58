// The commands of the section `actions`, as data.
import type { CommandSpec } from './command.ts';

export const actionsCommands: readonly CommandSpec[] = [
  {
    path: 'rsync-pull',
    summary: "pull this node's approved actions, push their results (exit 69 if the other side is away)",
    locks: true,
    load: () => import('./rsync-pull.ts'),
  },
  {
    path: 'deploy-action',
    summary: 'perform the approved redeploys in the inbox, each once',
    options: [
      { flags: '--watch', description: 'stay, and go on whenever there is a file: for hosts without systemd' },
    ],
    locks: true,
    load: () => import('./deploy-action.ts'),
  },
];
