// The commands as completion needs them: words, flags, and what a flag's value is. Pure.

/** As the registry has it. */
export type CompletedCommand = {
  path: string;
  summary: string;
  arguments?: readonly { name: string; description: string }[];
  options?: readonly { flags: string; description: string }[];
};

export type Flag = {
  name: string;
  description: string;
  /** Of its value; `optional` may have none. */
  value: 'none' | 'optional' | 'files' | 'text';
};

export type Described = {
  path: string;
  summary: string;
  flags: readonly Flag[];
  /** Its arguments: files, one of these words, a program with its own, or what nobody can complete. */
  argument: 'none' | 'files' | 'program' | readonly string[];
};

export type CompletionTree = { globalFlags: readonly Flag[]; commands: readonly Described[] };

export function describeCommands(
  commands: readonly CompletedCommand[],
  globalOptions: readonly { flags: string; description: string }[],
): CompletionTree {
  return {
    globalFlags: globalOptions.map(describeFlag),
    commands: commands.map((command) => ({
      path: command.path,
      summary: command.summary,
      flags: (command.options ?? []).map(describeFlag),
      argument: describeArgument(command.arguments ?? []),
    })),
  };
}

/** Words that may follow a group's, with what they do. */
export function secondWords(
  { commands }: CompletionTree,
  first: string,
): { word: string; summary: string }[] {
  return commands.flatMap(({ path, summary }) => {
    const [group, word] = path.split(' ');
    return group === first && word !== undefined ? [{ word, summary }] : [];
  });
}

/** Each first word once, with the summary of its command, or of its group's first one. */
export function firstWords({ commands }: CompletionTree): { word: string; summary: string }[] {
  const words = new Map<string, string>();
  for (const { path, summary } of commands) {
    const [word = '', second] = path.split(' ');
    if (second === undefined || !words.has(word)) words.set(word, summary);
  }
  return [...words].map(([word, summary]) => ({ word, summary }));
}

function describeFlag({ flags, description }: { flags: string; description: string }): Flag {
  // `-f, --follow` is completed by its long form.
  const [name = '', value] = flags.replace(/^-\w, /, '').split(' ');
  return { name, description, value: describeValue(value) };
}

function describeValue(value: string | undefined): Flag['value'] {
  if (value === undefined) return 'none';
  if (value.startsWith('[')) return 'optional';
  return /^<(file|directory)>$/.test(value) ? 'files' : 'text';
}

/** `bash, zsh or fish` is a list of words; what begins otherwise is told of, not listed. */
function describeArgument(args: readonly { name: string; description: string }[]): Described['argument'] {
  if (args.some(({ name }) => /^.file/.test(name))) return 'files';
  if (args.some(({ name }) => name === '[command...]')) return 'program';
  const list = args.find(({ description }) => /^[a-z]+(, [a-z]+)* or [a-z]+$/.test(description));
  return list === undefined ? 'none' : list.description.split(/, | or /);
}
