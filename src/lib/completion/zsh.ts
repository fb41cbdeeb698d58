// The completion script for zsh. Pure.
import { type CompletionTree, type Described, type Flag, firstWords, secondWords } from './describe.ts';

export function renderZsh(tree: CompletionTree): string {
  const own = new Set(tree.commands.map(({ path }) => path));
  const groups = firstWords(tree).filter(({ word }) => secondWords(tree, word).length > 0);
  return [
    '#compdef reeve',
    '# zsh completion of reeve: eval "$(reeve completion zsh)", or this text as _reeve in a directory of $fpath',
    '',
    '_reeve() {',
    '  local -a words_of',
    '  local context state state_descr line',
    '  typeset -A opt_args',
    '  _arguments -C \\',
    ...tree.globalFlags.map((flag) => `    ${flagSpec(flag)} \\`),
    "    '1: :->first' '*:: :->rest'",
    '  case $state in',
    '    first)',
    ...describeWords(firstWords(tree), '      '),
    '      ;;',
    '    rest)',
    '      case $words[1] in',
    ...groups.flatMap(({ word }) => groupCase(tree, word, own.has(word))),
    ...tree.commands
      .filter(({ path }) => !path.includes(' ') && !groups.some(({ word }) => word === path))
      .flatMap((command) => [
        `        ${command.path})`,
        ...argumentsOf(tree, command, '          '),
        '          ;;',
      ]),
    '      esac',
    '      ;;',
    '  esac',
    '}',
    '',
    // Sourced, it registers itself; autoloaded from $fpath, it is the function.
    'if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _reeve "$@"; else compdef _reeve reeve; fi',
    '',
  ].join('\n');
}

function groupCase(tree: CompletionTree, group: string, isCommand: boolean): string[] {
  const second = secondWords(tree, group);
  const plain = tree.commands.find(({ path }) => path === group);
  return [
    `        ${group})`,
    '          if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then',
    ...describeWords(second, '            '),
    '          else',
    '            case $words[2] in',
    ...second.flatMap(({ word }) => {
      const command = tree.commands.find(({ path }) => path === `${group} ${word}`) as Described;
      return [
        `              ${word})`,
        '                shift words',
        '                ((CURRENT--))',
        ...argumentsOf(tree, command, '                '),
        '                ;;',
      ];
    }),
    ...(isCommand && plain !== undefined
      ? ['              *)', ...argumentsOf(tree, plain, '                '), '                ;;']
      : []),
    '            esac',
    '          fi',
    '          ;;',
  ];
}

function describeWords(words: readonly { word: string; summary: string }[], indent: string): string[] {
  return [
    `${indent}words_of=(`,
    ...words.map(({ word, summary }) => `${indent}  ${quote(`${word}:${summary.replaceAll(':', '\\:')}`)}`),
    `${indent})`,
    `${indent}_describe command words_of`,
  ];
}

function argumentsOf(
  { globalFlags }: CompletionTree,
  { flags, argument }: Described,
  indent: string,
): string[] {
  const specs = [...flags, ...globalFlags].map(flagSpec);
  return [
    `${indent}_arguments \\`,
    ...specs.map((spec) => `${indent}  ${spec} \\`),
    `${indent}  ${argumentSpec(argument)}`,
  ];
}

function argumentSpec(argument: Described['argument']): string {
  if (argument === 'files') return "'*:file:_files'";
  if (argument === 'program') return "'1: :' '*:: :_normal'";
  if (argument === 'none') return "'*: :'";
  return `'1:word:(${argument.join(' ')})'`;
}

function flagSpec({ name, description, value }: Flag): string {
  const action = value === 'files' ? ':file:_files' : value === 'text' ? ':value: ' : '';
  return quote(`${name}[${description.replaceAll(/[[\]:\\]/g, '\\$&')}]${action}`);
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
