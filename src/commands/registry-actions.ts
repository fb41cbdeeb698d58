// The commands of the section `actions`, as data.
import type { CommandSpec, OptionSpec } from './command.ts';
import { yesOption } from './options.ts';

const actionArgument = { name: '<action>', description: 'id of the action' };
const reasonOption: OptionSpec = { flags: '--reason <text>', description: 'why: its history tells it' };

export const actionsCommands: readonly CommandSpec[] = [
  {
    path: 'rsync-pull',
    summary: "pull this node's approved actions, push their results (exit 69 if the other side is away)",
    locks: true,
    load: () => import('./rsync-pull.ts'),
  },
  {
    path: 'deploy-action',
    summary: 'perform the approved redeploys in the inbox, each once; while the node is held, they wait',
    options: [
      {
        flags: '--watch',
        description: 'stay, and go on whenever there is a file: for hosts without systemd',
      },
    ],
    locks: true,
    load: () => import('./deploy-action.ts'),
  },
  {
    path: 'action list',
    summary: 'actions that are pending, approved or running, on the control host; exit 1 if one is no use',
    options: [{ flags: '--all', description: 'with those that have ended' }],
    load: () => import('./action-list.ts'),
  },
  {
    path: 'action show',
    summary: 'all that is known of an action, and what its node has reported',
    arguments: [actionArgument],
    load: () => import('./action-show.ts'),
  },
  {
    path: 'action approve',
    summary: 'let a pending action be carried out; asks first',
    arguments: [actionArgument],
    options: [reasonOption, yesOption],
    locks: true,
    load: () => import('./action-approve.ts'),
  },
  {
    path: 'action reject',
    summary: 'put a pending action aside for good; asks first',
    arguments: [actionArgument],
    options: [reasonOption, yesOption],
    locks: true,
    load: () => import('./action-reject.ts'),
  },
  {
    path: 'action dispatch',
    summary: 'give approved redeploys to their nodes',
    options: [
      { flags: '--settle', description: 'settle first, as the timer does' },
      {
        flags: '--window <seconds>',
        description: 'look each second while one is under way, for so long (default 0, 300 at most)',
      },
    ],
    locks: true,
    load: () => import('./action-dispatch.ts'),
  },
  {
    path: 'action settle',
    summary: 'end running redeploys as their nodes report, or as they stay silent for too long',
    locks: true,
    load: () => import('./action-settle.ts'),
  },
];
