// The completion script for fish: one line a word or flag. Pure.
import { type CompletionTree, type Described, type Flag, firstWords, secondWords } from './describe.ts';

export function renderFish(tree: CompletionTree): string {
  const first = firstWords(tree);
  return [
    '# fish completion of reeve: reeve completion fish | source',
    '',
    'complete -c reeve -f',
    ...tree.globalFlags.map((flag) => flagLine(flag, undefined)),
    ...first.map(({ word, summary }) => wordLine('__fish_use_subcommand', word, summary)),
    ...first.flatMap(({ word }) => groupLines(tree, word)),
    ...tree.commands.flatMap(commandLines),
    '',
  ].join('\n');
}

function groupLines(tree: CompletionTree, group: string): string[] {
  const second = secondWords(tree, group);
  const words = second.map(({ word }) => word).join(' ');
  const condition = `__fish_seen_subcommand_from ${group}; and not __fish_seen_subcommand_from ${words}`;
  return second.map(({ word, summary }) => wordLine(condition, word, summary));
}

function commandLines({ path, flags, argument }: Described): string[] {
  const condition = path
    .split(' ')
    .map((word) => `__fish_seen_subcommand_from ${word}`)
    .join('; and ');
  const lines = flags.map((flag) => flagLine(flag, condition));
  if (argument === 'files') lines.push(`complete -c reeve -n ${quote(condition)} -F`);
  if (argument === 'program') {
    lines.push(`complete -c reeve -n ${quote(condition)} -a '(__fish_complete_subcommand)'`);
  }
  if (Array.isArray(argument)) {
    lines.push(`complete -c reeve -n ${quote(condition)} -a ${quote(argument.join(' '))}`);
  }
  return lines;
}

function wordLine(condition: string, word: string, summary: string): string {
  return `complete -c reeve -n ${quote(condition)} -a ${word} -d ${quote(summary)}`;
}

function flagLine({ name, description, value }: Flag, condition: string | undefined): string {
  const when = condition === undefined ? '' : ` -n ${quote(condition)}`;
  const needs = value === 'files' ? ' -r -F' : value === 'text' ? ' -x' : '';
  return `complete -c reeve${when} -l ${name.replace(/^--/, '')}${needs} -d ${quote(description)}`;
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
