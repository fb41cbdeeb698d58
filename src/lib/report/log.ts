// The story on stderr: one line an event. Plain on pipes, coloured on a terminal, with priorities in the journal.
// Never secrets, never whole documents.
import type { Invocation } from '../config/environment.ts';
import { toLine } from './printable.ts';

export type LogLevel = 'error' | 'warning' | 'info' | 'debug';
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

export type Log = {
  error(message: string, fields?: LogFields): void;
  warning(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
  /** What is going on just now: a spinner for a person at a terminal, nothing elsewhere. Undefined: nothing any more. */
  progress(what: string | undefined): void;
};

export type LogOptions = {
  invocation: Invocation;
  /** The least important level that is still written. */
  level: LogLevel;
  /** Written into each journal line, so that a run can be followed. */
  runId: string;
  write(line: string): void;
  /** Shows progress; absent where nobody watches. */
  progress?: (what: string | undefined) => void;
  /** Given what is written, without its fields; absent where nobody asks. */
  told?: Set<string>;
};

const rank: Record<LogLevel, number> = { error: 0, warning: 1, info: 2, debug: 3 };
const journalPriority: Record<LogLevel, string> = { error: '<3>', warning: '<4>', info: '<6>', debug: '<7>' };
const colours: Record<LogLevel, string> = { error: '31', warning: '33', info: '0', debug: '2' };

export function createLog(options: LogOptions): Log {
  const emit = (level: LogLevel, message: string, fields: LogFields = {}): void => {
    if (rank[level] > rank[options.level]) return;
    options.told?.add(message);
    options.write(renderLine(level, message, fields, options));
  };
  return {
    error: (message, fields) => emit('error', message, fields),
    warning: (message, fields) => emit('warning', message, fields),
    info: (message, fields) => emit('info', message, fields),
    debug: (message, fields) => emit('debug', message, fields),
    progress: options.progress ?? (() => {}),
  };
}

export const silentLog: Log = {
  error: () => {},
  warning: () => {},
  info: () => {},
  debug: () => {},
  progress: () => {},
};

function renderLine(level: LogLevel, message: string, fields: LogFields, options: LogOptions): string {
  const shown = options.invocation.journal ? { run: options.runId, ...fields } : fields;
  const suffix = Object.entries(shown)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${name}=${quoteField(String(value))}`)
    .join('');
  const text = toLine(`${message}${suffix}`);
  if (options.invocation.journal) return `${journalPriority[level]}${text}\n`;
  const labelled = level === 'info' ? text : `${level}: ${text}`;
  return options.invocation.colour ? `\u001b[${colours[level]}m${labelled}\u001b[0m\n` : `${labelled}\n`;
}

function quoteField(value: string): string {
  return /^[\w./:@#+,-]*$/.test(value) && value !== '' ? value : JSON.stringify(value);
}
