// Turns the registry into commander's tree. Parsing only: what runs is decided by the callback.
import { Command, CommanderError } from 'commander';
import { UsageError } from '../lib/errors.ts';
import type { CommandSpec, OptionSpec } from './command.ts';
import { globalOptions, waitOptions } from './options.ts';
import { commands, groupSummaries } from './registry.ts';

export type ParsedCommand = { spec: CommandSpec; args: readonly string[]; options: Record<string, unknown> };

/** What commander answered by itself: help or the version, to be printed as it is. */
export type ParsedAnswer = { answer: string };

/** Parses the words after the program's name. Throws UsageError. */
export async function parseCommandLine(
  words: readonly string[],
  version: string,
): Promise<ParsedCommand | ParsedAnswer> {
  if (words.length === 1 && words[0] === '--version') return { answer: `${version}\n` };
  let answer = '';
  let parsed: ParsedCommand | undefined;
  const program = createRoot(version, (text) => {
    answer += text;
  });
  const groups = new Map<string, Command>();
  for (const spec of selectCommands(words)) {
    const command = addCommand(program, groups, spec);
    command.action((...received: unknown[]) => {
      requireOwnOptions(program, command);
      const args = received.slice(0, -2).flat() as (string | undefined)[];
      parsed = {
        spec,
        args: args.filter((arg) => arg !== undefined),
        options: command.optsWithGlobals(),
      };
    });
  }
  try {
    await program.parseAsync(rewriteWords(words), { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode !== 0 || error.code === 'commander.help') throw usageError(error, answer);
  }
  return parsed ?? { answer };
}

/** Those that the words can mean, as making commander's objects for all takes 3 ms; all, where help has to list them. */
function selectCommands(words: readonly string[]): readonly CommandSpec[] {
  const meant = commands.filter(({ path }) => words.includes(path.split(' ', 1)[0] as string));
  return meant.length === 0 ? commands : meant;
}

function createRoot(version: string, write: (text: string) => void): Command {
  const program = new Command('reeve');
  program
    .description('Keeps a server at its desired state, one short-lived command at a time')
    .version(version, '--version', 'print the version')
    .exitOverride()
    .configureOutput({ writeOut: write, writeErr: write, outputError: () => {} })
    .configureHelp({
      showGlobalOptions: true,
      // Commander's own would add those of the group, as of `backup` to `backup list`, which has not all of them.
      visibleGlobalOptions: (command) => (command.parent === null ? [] : [...program.options]),
    })
    .helpCommand(false)
    .showSuggestionAfterError();
  for (const option of globalOptions) program.option(option.flags, option.description);
  return program;
}

function addCommand(program: Command, groups: Map<string, Command>, spec: CommandSpec): Command {
  const words = spec.path.split(' ');
  const name = words.at(-1) as string;
  const group = groupCommand(program, groups, words[0] as string);
  const command = words.length === 1 ? group : group.command(name, { hidden: spec.hidden === true });
  command.description(spec.summary);
  for (const argument of spec.arguments ?? []) command.argument(argument.name, argument.description);
  for (const option of spec.options ?? []) addOption(command, option);
  for (const option of waitOptions(spec.locks)) addOption(command, option);
  return command;
}

/** A group that is a command as well takes its options from anywhere among the words. Throws UsageError for what is not the command's. */
function requireOwnOptions(program: Command, command: Command): void {
  const group = command.parent;
  if (group === null || group === program) return;
  const strange = group.options.find(
    (option) =>
      group.getOptionValueSource(option.attributeName()) === 'cli' &&
      !command.options.some((own) => own.attributeName() === option.attributeName()),
  );
  if (strange !== undefined) throw new UsageError(`unknown option '${strange.long ?? strange.flags}'`);
}

function addOption(command: Command, option: OptionSpec): void {
  if (option.repeatable === true) {
    command.option(option.flags, option.description, (value: string, earlier: string[] = []) => [
      ...earlier,
      value,
    ]);
    return;
  }
  command.option(option.flags, option.description);
}

/** A first word may be a group, a command, or both (`lock NAME` and `lock list`). With nothing to show it is not shown itself. */
function groupCommand(program: Command, groups: Map<string, Command>, name: string): Command {
  const known = groups.get(name);
  if (known !== undefined) return known;
  const below = commands.filter(({ path }) => path.split(' ', 1)[0] === name);
  const isHidden = below.every(({ hidden }) => hidden === true);
  const group = program.command(name, { hidden: isHidden }).helpCommand(false);
  const summary = groupSummaries[name];
  if (summary !== undefined) group.description(summary);
  groups.set(name, group);
  return group;
}

/** The seed systems' `-config PATH` means `--config PATH`, and `help WORDS` means `WORDS --help`. */
function rewriteWords(words: readonly string[]): string[] {
  const end = words.indexOf('--');
  const ours = end === -1 ? words : words.slice(0, end);
  const rewritten = ours.map((word) => (/^-(config|version)(=|$)/.test(word) ? `-${word}` : word));
  const asked = rewritten[0] === 'help' ? askForHelp(rewritten.slice(1)) : rewritten;
  return [...asked, ...(end === -1 ? [] : words.slice(end))];
}

/** A misspelt command is told as one: help on nothing would be help on everything. */
function askForHelp(words: readonly string[]): string[] {
  const first = words.find((word) => !word.startsWith('-'));
  const isKnown = first === undefined || commands.some(({ path }) => path.split(' ', 1)[0] === first);
  return isKnown ? [...words, '--help'] : [...words];
}

function usageError(error: CommanderError, help: string): UsageError {
  if (error.code === 'commander.help') return new UsageError(`a command is missing\n\n${help.trimEnd()}`);
  return new UsageError(error.message.replace(/^error: /, ''));
}
