// The commands of the section `commands`, as data.
import type { CommandSpec } from './command.ts';
import { apiOptions } from './options.ts';

export const commandsCommands: readonly CommandSpec[] = [
  {
    path: 'api commands',
    summary: "serve this node's API for commands, on systemd's socket or an address",
    options: apiOptions,
    load: () => import('./api-commands.ts'),
  },
  {
    path: 'command run',
    summary: 'bring one command to its end, for its unit',
    arguments: [{ name: '<command>', description: 'id of the command' }],
    locks: true,
    hidden: true,
    load: () => import('./command-run.ts'),
  },
];
