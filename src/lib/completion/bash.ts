// The completion script for bash: two functions of plain `case`s that need no helper package. Pure.
import { type CompletionTree, type Described, type Flag, firstWords, secondWords } from './describe.ts';

export function renderBash(tree: CompletionTree): string {
  return [
    '# bash completion of reeve: eval "$(reeve completion bash)"',
    '',
    '# What is known of the words so far: flags, those with a value, those with a file, and what may follow.',
    '_reeve_about() {',
    `  flags='' valued='' files='' follow=''`,
    '  case $1 in',
    `    '') follow='${firstWords(tree)
      .map(({ word }) => word)
      .join(' ')}' ;;`,
    ...byLength(tree).map((command) => aboutCase(tree, command)),
    ...groupCases(tree),
    '  esac',
    `  flags="$flags ${names(tree.globalFlags)} --help"`,
    `  valued="$valued ${names(tree.globalFlags, isValued)}"`,
    `  files="$files ${names(tree.globalFlags, isFiles)}"`,
    '}',
    '',
    driver,
  ].join('\n');
}

/** The loop steps over a flag and its value: where it has stepped past the word at hand, that word is the value. */
const driver = `_reeve() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous='' path='' word index flags valued files follow
  COMPREPLY=()
  _reeve_about ''
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=\${COMP_WORDS[index]} previous=$word
    if [[ $word == -- ]]; then
      COMPREPLY=($(compgen -c -- "$current"))
      return
    elif [[ " $valued " == *" $word "* ]]; then
      ((index++))
    elif [[ $word != -* ]]; then
      path="\${path:+$path }$word"
      _reeve_about "$path"
    fi
  done
  if ((index > COMP_CWORD)); then
    if [[ " $files " == *" $previous "* ]]; then COMPREPLY=($(compgen -f -- "$current")); fi
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  elif [[ $follow == FILES ]]; then
    COMPREPLY=($(compgen -f -- "$current"))
  else
    COMPREPLY=($(compgen -W "$follow" -- "$current"))
  fi
}
complete -o filenames -F _reeve reeve
`;

const isValued = ({ value }: Flag): boolean => value === 'files' || value === 'text';
const isFiles = ({ value }: Flag): boolean => value === 'files';

function names(flags: readonly Flag[], accepts: (flag: Flag) => boolean = () => true): string {
  return flags
    .filter(accepts)
    .map(({ name }) => name)
    .join(' ');
}

/** Longer paths first: `lock list` before `lock`. */
function byLength({ commands }: CompletionTree): Described[] {
  return commands.toSorted((left, right) => right.path.length - left.path.length);
}

/** With arguments already there, flags are as before, and nothing more is known to follow. */
function aboutCase(tree: CompletionTree, { path, flags, argument }: Described): string {
  const second = secondWords(tree, path).map(({ word }) => word);
  const words = Array.isArray(argument) ? argument : [];
  const follow = argument === 'files' ? 'FILES' : [...second, ...words].join(' ');
  return [
    `    '${path}'|'${path} '*) flags='${names(flags)}' valued='${names(flags, isValued)}'`,
    ` files='${names(flags, isFiles)}'; [[ $1 != '${path}' ]] || follow='${follow}' ;;`,
  ].join('');
}

/** A first word that is no command by itself. */
function groupCases(tree: CompletionTree): string[] {
  const own = new Set(tree.commands.map(({ path }) => path));
  return firstWords(tree).flatMap(({ word }) => {
    const second = secondWords(tree, word).map((next) => next.word);
    return own.has(word) ? [] : [`    '${word}') follow='${second.join(' ')}' ;;`];
  });
}
