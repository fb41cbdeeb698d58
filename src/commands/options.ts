// Flags that commands have without naming them.
import type { OptionSpec } from './command.ts';

export const globalOptions: readonly OptionSpec[] = [
  { flags: '--config <file>', description: 'configuration file (default /etc/reeve/reeve.yaml)' },
  { flags: '--json', description: 'print one JSON document instead of text' },
  { flags: '--debug', description: 'tell more, and print stack traces' },
  { flags: '--quiet', description: 'only warnings and errors besides the answer' },
];

/** Of commands that take a lock. */
export const waitOption: OptionSpec = {
  flags: '--wait <seconds>',
  description: 'wait this long for a busy lock instead of exiting 75',
};

/** Of several commands. */
export const serviceOption: OptionSpec = {
  flags: '--service <project/service>',
  description: 'only this service',
};
export const yesOption: OptionSpec = { flags: '--yes', description: 'do not ask' };
export const dryRunOption: OptionSpec = {
  flags: '--dry-run',
  description: 'tell what would be done and change nothing',
};

/** Of the node's HTTP APIs. */
export const apiOptions: readonly OptionSpec[] = [
  { flags: '--listen <address>', description: 'HOST:PORT or :PORT, until it is stopped' },
  { flags: '--idle <seconds>', description: 'end when nobody has been connected for so long (default: 60)' },
];
