// Every command as data. Each has one thin module, imported only when its command runs.
import type { CommandSpec, OptionSpec } from './command.ts';
import { dryRunOption, serviceOption, yesOption } from './options.ts';
import { actionsCommands } from './registry-actions.ts';
import { backupCommands } from './registry-backup.ts';
import { commandsCommands } from './registry-commands.ts';
import { jobCommands } from './registry-jobs.ts';
import { proxyCommands } from './registry-proxy.ts';

const noNotifyOption: OptionSpec = { flags: '--no-notify', description: 'do not wake the nodes' };
const convergeOption: OptionSpec = {
  flags: '--wait [seconds]',
  description: 'wait until the nodes have converged (default 600)',
};

/** Of first words that are no commands by themselves. */
export const groupSummaries: Readonly<Record<string, string>> = {
  action: 'on the control host: decide about actions, and follow them',
  api: "the node's own HTTP APIs, each on a socket of systemd's",
  command: 'run commands of the control plane',
  config: 'check, show and describe the configuration',
  job: 'list, show, follow and cancel jobs of the control plane',
  node: 'what a node needs to be one',
  proxy: 'instances that the proxy of this node leads to, and its tunnels',
  units: 'list, render and verify the systemd units of this machine',
};

export const commands: readonly CommandSpec[] = [
  {
    path: 'init',
    summary: "write a commented configuration and this node's entry in the store",
    options: [
      { flags: '--node <id>', description: 'id of this node (default: its host name)' },
      { flags: '--role <role>', description: 'app, edge, or app,edge (default: app)' },
      {
        flags: '--store <url>',
        description: 'file:///directory (default: one on this machine) or s3://bucket[/prefix]',
      },
      { flags: '--cluster <id>', description: 'the cluster it belongs to (default: default)' },
      {
        flags: '--region <region>',
        description: "of AWS, where the store is there (default: AWS_REGION, the bucket's name, us-east-1)",
      },
      { flags: '--endpoint <url>', description: 'of another service than AWS (default: AWS_ENDPOINT_URL)' },
    ],
    load: () => import('./init.ts'),
  },
  {
    path: 'config check',
    summary: 'check the configuration and the files it names',
    load: () => import('./config-check.ts'),
  },
  {
    path: 'config show',
    summary: 'show the configuration in force, secrets hidden',
    load: () => import('./config-show.ts'),
  },
  {
    path: 'config schema',
    summary: 'print the JSON Schema of the configuration file',
    load: () => import('./config-schema.ts'),
  },
  {
    path: 'deploy',
    summary: 'put a file of services into the desired state of their nodes',
    arguments: [
      { name: '[file]', description: 'YAML file that is the whole truth about the projects it names' },
    ],
    options: [
      serviceOption,
      { flags: '--remove <project>', description: 'remove a project everywhere instead' },
      convergeOption,
      noNotifyOption,
      dryRunOption,
      yesOption,
    ],
    load: () => import('./deploy.ts'),
  },
  {
    path: 'plan',
    summary: 'tell what reconcile would do and why (exit 2 if anything)',
    load: () => import('./plan.ts'),
  },
  {
    path: 'reconcile',
    summary: 'bring this node to its desired state',
    options: [
      dryRunOption,
      serviceOption,
      { flags: '--allow-removal', description: 'let a desired state that drops most services have its way' },
      { flags: '--watch', description: 'stay, and go on whenever there is news: for hosts without systemd' },
    ],
    locks: true,
    tellsConfig: true,
    load: () => import('./reconcile.ts'),
  },
  ...backupCommands,
  ...jobCommands,
  ...commandsCommands,
  ...proxyCommands,
  ...actionsCommands,
  {
    path: 'heartbeat',
    summary: 'report this node alive, if it is',
    locks: true,
    tellsConfig: true,
    load: () => import('./heartbeat.ts'),
  },
  {
    path: 'edge',
    summary:
      'bring Caddy and the balancer to the routes that the nodes publish (with --dry-run, exit 2 if anything)',
    options: [dryRunOption],
    locks: true,
    tellsConfig: true,
    load: () => import('./edge.ts'),
  },
  {
    path: 'listen',
    summary: 'wait for notifications of deploys, and wake what they are for',
    options: [{ flags: '--window <seconds>', description: 'for how long (default 20)' }],
    locks: true,
    load: () => import('./listen.ts'),
  },
  {
    path: 'status',
    summary: 'what runs here and what each concern did last',
    options: [{ flags: '--cluster', description: 'every node in the store' }],
    load: () => import('./status.ts'),
  },
  {
    path: 'doctor',
    summary: 'what is wrong on this machine, and how to mend it',
    load: () => import('./doctor.ts'),
  },
  {
    path: 'history',
    summary: 'what was done, when, by which run, and why',
    arguments: [{ name: '[project/service]', description: 'only this service, or a domain on an edge' }],
    options: [
      { flags: '--since <time>', description: 'a duration (2h) or an instant (2026-06-04T03:00:00Z)' },
    ],
    load: () => import('./history.ts'),
  },
  {
    path: 'rollback',
    summary: 'bring a service back to an earlier deploy',
    arguments: [{ name: '<project/service>', description: 'the service' }],
    options: [
      { flags: '--to <n>', description: 'how many different deploys back (default 1)' },
      convergeOption,
      noNotifyOption,
      dryRunOption,
    ],
    load: () => import('./rollback.ts'),
  },
  {
    path: 'restart',
    summary: 'replace the containers of a service, one after another',
    arguments: [{ name: '<project/service>', description: 'the service' }],
    options: [convergeOption, noNotifyOption, dryRunOption, yesOption],
    load: () => import('./restart.ts'),
  },
  {
    path: 'hold',
    summary: 'make the timers leave a service or this node alone for a while',
    arguments: [{ name: '[project/service]', description: 'the service; without it the holds are listed' }],
    options: [
      { flags: '--node', description: 'the whole node' },
      { flags: '--for <duration>', description: 'how long, as 1h' },
      { flags: '--reason <text>', description: 'why, for whoever wonders' },
      { flags: '--end', description: 'end the hold' },
    ],
    load: () => import('./hold.ts'),
  },
  {
    path: 'prune',
    summary: 'remove images that nothing refers to; a volume only by name',
    options: [
      dryRunOption,
      { flags: '--volumes <project/service/name>', description: 'remove this volume and its data' },
      { flags: '--no-backup', description: 'remove the volume although no backup of it is newer' },
      yesOption,
    ],
    locks: true,
    load: () => import('./prune.ts'),
  },
  {
    path: 'lock',
    summary: "run a command under one of reeve's locks",
    arguments: [
      { name: '<name>', description: 'the lock, as reconcile or service@blog@web' },
      { name: '[command...]', description: 'after --: the command and its arguments' },
    ],
    locks: true,
    load: () => import('./lock.ts'),
  },
  {
    path: 'lock list',
    summary: 'who holds which lock',
    load: () => import('./lock-list.ts'),
  },
  {
    path: 'units list',
    summary: 'the units of this machine: switched on, active, next run, last result',
    load: () => import('./units-list.ts'),
  },
  {
    path: 'units render',
    summary: 'the drop-ins that this configuration adds to the units',
    options: [
      { flags: '--diff', description: 'compare with what is there (exit 2 if different)' },
      { flags: '--write', description: 'put them in place and switch the targets of its roles on and off' },
      { flags: '--root <directory>', description: 'the directory that stands for /, for an image' },
    ],
    load: () => import('./units-render.ts'),
  },
  {
    path: 'units verify',
    summary: 'check syntax, sandbox and next runs of the units',
    options: [{ flags: '--root <directory>', description: 'the directory that stands for /, for an image' }],
    load: () => import('./units-verify.ts'),
  },
  {
    path: 'node iam',
    summary: 'print the policy of AWS that a role needs for this configuration, and no more',
    options: [
      { flags: '--role <role>', description: "app, edge, app,edge or deploy (default: this node's)" },
      { flags: '--node <id>', description: 'for this node (default: this one)' },
      {
        flags: '--account <id>',
        description: 'AWS account (default: the one in launch-pad-state-ACCOUNT-REGION)',
      },
    ],
    load: () => import('./node-iam.ts'),
  },
  {
    path: 'completion',
    summary: 'print the completion script of a shell',
    arguments: [{ name: '<shell>', description: 'bash, zsh or fish' }],
    load: async () => (await import('./completion.ts')).completeFrom(commands),
  },
  {
    path: 'failed',
    summary: 'record that a unit has failed and tell people',
    arguments: [{ name: '<unit>', description: 'its full name' }],
    hidden: true,
    load: () => import('./failed.ts'),
  },
  {
    path: 'ended',
    summary: "close the record of a concern's run that was killed",
    arguments: [{ name: '<concern>', description: 'as in runs/<concern>.json' }],
    hidden: true,
    load: () => import('./ended.ts'),
  },
];
