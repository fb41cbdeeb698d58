// `reeve completion SHELL`: the script, made from the registry.
import { renderBash } from '../lib/completion/bash.ts';
import { describeCommands } from '../lib/completion/describe.ts';
import { renderFish } from '../lib/completion/fish.ts';
import { renderZsh } from '../lib/completion/zsh.ts';
import { UsageError } from '../lib/errors.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandModule, CommandSpec } from './command.ts';
import { globalOptions, waitOptions } from './options.ts';

const renderers = { bash: renderBash, zsh: renderZsh, fish: renderFish };

/** The registry is handed in: it is what imports this. */
export function completeFrom(commands: readonly CommandSpec[]): CommandModule {
  return { run: ({ args }) => Promise.resolve(printScript(commands, args[0] ?? '')) };
}

function printScript(commands: readonly CommandSpec[], shell: string): Outcome {
  if (!Object.hasOwn(renderers, shell)) {
    throw new UsageError(`there is no completion for ${JSON.stringify(shell)}: bash, zsh and fish have one`);
  }
  const shown = commands
    .filter(({ hidden }) => hidden !== true)
    .map((command) => ({
      ...command,
      options: [...(command.options ?? []), ...waitOptions(command.locks)],
    }));
  const script = renderers[shell as keyof typeof renderers](describeCommands(shown, globalOptions));
  return { outcome: 'done', text: [script.trimEnd()], data: { shell, script } };
}
