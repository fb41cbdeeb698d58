// The commands of the node's proxy, as data.
import type { CommandSpec } from './command.ts';

const instanceArgument = { name: '<instance>', description: 'as in /i/<instance>/' };

/** As `underProxyLock` waits. */
const waits = { waitSeconds: 20 };

export const proxyCommands: readonly CommandSpec[] = [
  {
    path: 'proxy set',
    summary: 'register the port of an instance',
    arguments: [instanceArgument, { name: '<port>', description: 'where it listens now' }],
    locks: waits,
    load: () => import('./proxy-set.ts'),
  },
  {
    path: 'proxy get',
    summary: 'print the port of an instance (exit 1 if it has none)',
    arguments: [instanceArgument],
    load: () => import('./proxy-get.ts'),
  },
  {
    path: 'proxy remove',
    summary: 'forget an instance',
    arguments: [instanceArgument],
    locks: waits,
    load: () => import('./proxy-remove.ts'),
  },
  {
    path: 'proxy list',
    summary: 'the registered instances, and how many tunnels are open',
    load: () => import('./proxy-list.ts'),
  },
  {
    path: 'proxy sync',
    summary: 'bring the running HAProxy to the registry',
    options: [{ flags: '--write-only', description: 'only the files that it starts from, for its unit' }],
    locks: waits,
    load: () => import('./proxy-sync.ts'),
  },
  {
    path: 'proxy drain',
    summary: 'refuse new tunnels, wait for the open ones, then close them',
    options: [{ flags: '--end', description: 'take new tunnels again' }],
    load: () => import('./proxy-drain.ts'),
  },
];
