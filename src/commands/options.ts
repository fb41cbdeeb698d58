// Flags that commands have without naming them.
import type { CommandSpec, OptionSpec } from './command.ts';

export const globalOptions: readonly OptionSpec[] = [
  { flags: '--config <file>', description: 'configuration file (default /etc/reeve/reeve.yaml)' },
  { flags: '--json', description: 'print one JSON document instead of text' },
  { flags: '--debug', description: 'tell more, and print stack traces' },
  { flags: '--quiet', description: 'only warnings and errors besides the answer' },
];

/** `--wait`, of commands that take a lock. */
export function waitOptions(locks: CommandSpec['locks']): OptionSpec[] {
  if (locks === undefined) return [];
  const description =
    locks === true
      ? 'wait this long for a busy lock instead of exiting 75'
      : `wait this long for a busy lock, ${locks.waitSeconds} seconds unless it is given, then exit 75`;
  return [{ flags: '--wait <seconds>', description }];
}

/** Of several commands. */
export const serviceOption: OptionSpec = {
  flags: '--service <project/service>',
  description: 'only this service',
};
export const yesOption: OptionSpec = {
  flags: '--yes',
  description: 'do not ask: needed where there is no terminal',
};
export const dryRunOption: OptionSpec = {
  flags: '--dry-run',
  description: 'tell what would be done and change nothing',
};

/** Of the node's HTTP APIs. */
export const apiOptions: readonly OptionSpec[] = [
  { flags: '--listen <address>', description: 'HOST:PORT or :PORT, until it is stopped' },
  {
    flags: '--idle <seconds>',
    description:
      "end when nobody has been connected for so long (default: 60 on systemd's socket, never with --listen)",
  },
];
