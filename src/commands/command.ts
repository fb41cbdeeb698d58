// What a command is: its words and flags as data, and one function that runs it.
import type { BaseContext, Context } from '../lib/context.ts';
import type { Outcome } from '../lib/outcome.ts';

export type CommandInput = {
  base: BaseContext;
  /** Positional arguments in order; a variadic one is spread. */
  args: readonly string[];
  /** Flags by their camel-case name, as commander gives them. */
  options: Readonly<Record<string, unknown>>;
  /** Reads and checks the configuration; throws ConfigError. */
  loadContext(): Promise<Context>;
};

export type CommandModule = { run(input: CommandInput): Promise<Outcome> };

export type OptionSpec = { flags: string; description: string; repeatable?: boolean };

export type CommandSpec = {
  /** Words as typed: `config check`. */
  path: string;
  summary: string;
  /** Commander's notation: `<file>`, `[service]`, `[nodes...]`. */
  arguments?: readonly { name: string; description: string }[];
  options?: readonly OptionSpec[];
  /** Takes a lock, so that `--wait SECONDS` is accepted; for how long it waits without, where that is not 0. */
  locks?: true | { waitSeconds: number };
  /** Warns of what is odd in the configuration: of those that timers start, not of every question of a person or a caller. */
  tellsConfig?: true;
  /** For units, not for people: help and completion leave it out. */
  hidden?: boolean;
  load(): Promise<CommandModule>;
};
