// The entry: the only place that prints answers and errors and sets the exit code.
import { readInvocation, readOverrides } from '../lib/config/environment.ts';
import { loadConfig } from '../lib/config/load.ts';
import { resolvePaths } from '../lib/config/paths.ts';
import type { BaseContext } from '../lib/context.ts';
import { describeError, ReeveError, StepError, systemErrorCode } from '../lib/errors.ts';
import { ExitCode } from '../lib/exit-codes.ts';
import { newRunId } from '../lib/ids.ts';
import { exitCodeOf, type Outcome } from '../lib/outcome.ts';
import { createLog } from '../lib/report/log.ts';
import { escapeControls } from '../lib/report/printable.ts';
import { createSpinner } from '../lib/report/spinner.ts';
import { systemClock } from '../lib/time.ts';
import { version } from '../lib/version.ts';
import { type ParsedCommand, parseCommandLine } from './program.ts';

// Whatever escapes every promise is a bug of ours: it is told as one, and the exit code says so.
process.on('uncaughtException', (error) => {
  process.exitCode = ExitCode.internal;
  process.stderr.write(`reeve: internal error: ${error.stack ?? error.message}\n`, () =>
    process.exit(ExitCode.internal),
  );
});
// On one terminal the story and the answer are read together: what was told as it happened is not said once more.
const told = process.stdout.isTTY && process.stderr.isTTY ? new Set<string>() : undefined;
process.exitCode = await main(process.argv.slice(2));

async function main(words: readonly string[]): Promise<number> {
  const own = beforeSeparator(words);
  const json = own.includes('--json');
  let command = '';
  surviveLostReaders();
  const stop = watchSignals();
  try {
    const parsed = await parseCommandLine(words, version);
    if ('answer' in parsed) {
      await print(process.stdout, parsed.answer);
      return ExitCode.done;
    }
    command = parsed.spec.path;
    return await runCommand(parsed, stop);
  } catch (error) {
    await reportError(error, { command, json, debug: own.includes('--debug') });
    return stop.exitCode() ?? (error instanceof ReeveError ? error.exitCode : ExitCode.internal);
  }
}

async function runCommand(parsed: ParsedCommand, stop: Stop): Promise<number> {
  const base = createBase(parsed, stop.signal);
  const module = await parsed.spec.load();
  const outcome = await module.run({
    base,
    args: parsed.args,
    options: parsed.options,
    loadContext: async () => {
      const config = await loadConfig(base.paths, base.overrides);
      if (parsed.spec.tellsConfig === true) {
        for (const warning of config.warnings) base.log.warning(warning);
      }
      return { ...base, config };
    },
  });
  base.log.progress(undefined);
  await printOutcome(parsed, outcome);
  return stop.exitCode() ?? exitCodeOf(outcome);
}

function createBase(parsed: ParsedCommand, signal: AbortSignal): BaseContext {
  const runId = newRunId(systemClock.now());
  const { config } = parsed.options;
  const invocation = readInvocation();
  const progress = parsed.options['quiet'] === true ? undefined : createSpinner(process.stderr);
  return {
    runId,
    command: parsed.spec.path,
    paths: resolvePaths(typeof config === 'string' ? { config } : {}),
    overrides: readOverrides(),
    clock: systemClock,
    log: createLog({
      invocation,
      level: logLevel(parsed.options),
      runId,
      write: (line) => {
        process.stderr.write(line);
      },
      ...(progress === undefined ? {} : { progress }),
      ...(told === undefined ? {} : { told }),
    }),
    signal,
    interactive: process.stderr.isTTY === true && process.stdin.isTTY === true,
  };
}

function logLevel(options: Record<string, unknown>): 'debug' | 'info' | 'warning' {
  if (options['debug'] === true) return 'debug';
  return options['quiet'] === true ? 'warning' : 'info';
}

/** A `head` that has seen enough, or a full disk behind a redirection, must not end a rollout half-way: it goes on untold. */
function surviveLostReaders(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
}

type Stop = { signal: AbortSignal; exitCode(): number | undefined };

/** SIGTERM and SIGINT abort the signal; what runs settles its step and returns, then the exit code is 128+n. */
function watchSignals(): Stop {
  const controller = new AbortController();
  let exitCode: number | undefined;
  const stopOn = (name: 'SIGTERM' | 'SIGINT', number: number): void => {
    process.on(name, () => {
      exitCode = 128 + number;
      controller.abort(new Error(`stopped by ${name}`));
    });
  };
  stopOn('SIGTERM', 15);
  stopOn('SIGINT', 2);
  return { signal: controller.signal, exitCode: () => exitCode };
}

async function printOutcome(parsed: ParsedCommand, outcome: Outcome): Promise<void> {
  if (parsed.options['json'] === true) {
    const document = { version: 1, command: parsed.spec.path, outcome: outcome.outcome, ...outcome.data };
    await print(process.stdout, `${JSON.stringify(document)}\n`);
    return;
  }
  const text = outcome.text.filter((line) => told?.has(line) !== true);
  if (text.length > 0) await print(process.stdout, `${escapeControls(text.join('\n'))}\n`);
}

async function reportError(
  error: unknown,
  how: { command: string; json: boolean; debug: boolean },
): Promise<void> {
  const message = describeError(error);
  if (how.json) {
    const code = error instanceof ReeveError ? error.code : 'internal';
    const outcome = code === 'busy' ? 'busy' : 'failed';
    const document = { version: 1, command: how.command, outcome, error: { code, message } };
    // Where the answer cannot be printed, that is the error told below.
    await print(process.stdout, `${JSON.stringify(document)}\n`).catch(() => {});
  }
  const prefix = readInvocation().journal ? '<3>' : '';
  const lines = [`${prefix}reeve: ${escapeControls(message)}`];
  const unexpected = !(error instanceof ReeveError);
  if (how.debug && error instanceof Error) lines.push(describeStack(error));
  else if (unexpected) lines.push(`${prefix}reeve: this is a bug; run again with --debug`);
  // Nobody is left to be told that stderr has failed.
  await print(process.stderr, `${lines.join('\n')}\n`).catch(() => {});
}

function describeStack(error: Error): string {
  const cause = error.cause instanceof Error ? `\ncaused by: ${describeStack(error.cause)}` : '';
  return `${error.stack ?? error.message}${cause}`;
}

/** Waits until the text has left us: an exit must not cut a pipe's tail. A reader that went away is no error. */
function print(stream: NodeJS.WriteStream, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => {
      if (!error || systemErrorCode(error) === 'EPIPE') return resolve();
      reject(new StepError(`cannot print the answer: ${describeError(error)}`, { cause: error }));
    });
  });
}

/** What comes after `--` belongs to another program. */
function beforeSeparator(words: readonly string[]): readonly string[] {
  const at = words.indexOf('--');
  return at === -1 ? words : words.slice(0, at);
}
