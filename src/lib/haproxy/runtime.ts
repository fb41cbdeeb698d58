// Talks to a running HAProxy: commands to a worker over its runtime socket, a reload over the master's. Knows nothing of
// what is balanced.
import { connect, type Socket } from 'node:net';
import { InternalError, UnavailableError } from '../errors.ts';
import { formatDuration } from '../time.ts';

export type RuntimeOptions = {
  signal: AbortSignal;
  timeoutMs?: number;
  /** The unit that should be listening, for messages. */
  service: string;
};

const defaultTimeoutMs = 10_000;
/** How HAProxy says in its interactive mode that an answer is over. */
const prompt = '\n> ';
/** The master's, which says as well that the last reload has failed. */
const masterPrompt = /master(?:\[\w+\])?> /;

/**
 * One answer a command, without the line breaks at its end. All commands go out at once: HAProxy takes them line by line,
 * each within its own buffer, however many there are. Throws UnavailableError where it cannot be asked, or stops half-way.
 */
export async function askRuntime(
  path: string,
  commands: readonly string[],
  options: RuntimeOptions,
): Promise<string[]> {
  requireSingle(commands);
  const lines = ['prompt', ...commands, 'quit'];
  // Not half-closed: HAProxy may then drop the connection in the middle of its answers. `quit` ends it.
  const request = `${lines.join('\n')}\n`;
  const text = await exchange(path, (socket) => socket.write(request), options);
  // Before the first answer stands that to `prompt`, which is empty; `quit` has none.
  const [, ...answers] = text.split(prompt);
  if (answers.length !== commands.length + 1) throw cut(path, answers.length - 1, commands.length);
  return answers.slice(0, -1).map((answer) => answer.trimEnd());
}

/** No answer of these is empty. */
const answered = /^(get map|show (stat|sess|version))\b/;

/**
 * The same of one worker, over the master's socket. Undefined if the master knows no such worker, which then has ended, or if it
 * ends just then: the master gives an empty answer for it, which is that of many a command as well. So one of the commands should
 * be such as always has an answer.
 */
export async function askWorker(
  masterSocket: string,
  pid: number,
  commands: readonly string[],
  options: RuntimeOptions,
): Promise<string[] | undefined> {
  requireSingle(commands);
  // The prefix counts for one command.
  const lines = ['prompt', ...commands.map((command) => `@!${pid} ${command}`), 'quit'];
  const text = await exchange(masterSocket, (socket) => socket.write(`${lines.join('\n')}\n`), options);
  const [, ...answers] = text.split(masterPrompt);
  if (answers[0]?.startsWith("Can't find the target") === true) return undefined;
  if (answers.length <= commands.length) throw cut(masterSocket, answers.length, commands.length);
  const trimmed = answers.slice(0, commands.length).map((answer) => answer.trimEnd());
  return commands.some((command, index) => trimmed[index] === '' && answered.test(command))
    ? undefined
    : trimmed;
}

/** One command to the master, which answers once nothing more can come from us. */
export async function askMaster(path: string, command: string, options: RuntimeOptions): Promise<string> {
  return (await exchange(path, (socket) => socket.end(`${command}\n`), options)).trimEnd();
}

function requireSingle(commands: readonly string[]): void {
  const odd = commands.find((command) => /[\r\n;]|^\s*$/.test(command));
  if (odd !== undefined) throw new InternalError(`${JSON.stringify(odd)} is not one command of HAProxy`);
}

function cut(path: string, answered: number, asked: number): UnavailableError {
  const cause = `${Math.max(0, answered)} of ${asked} commands were answered`;
  return unavailable(path, cause, 'cut');
}

function exchange(path: string, send: (socket: Socket) => void, options: RuntimeOptions): Promise<string> {
  const { signal, timeoutMs = defaultTimeoutMs } = options;
  return new Promise((resolve, reject) => {
    const socket = connect({ path, allowHalfOpen: true });
    const fail = (error: Error): void => {
      stop();
      reject(error);
    };
    const interrupt = (): void => {
      const [cause, code] = isLate(signal)
        ? ['no answer in time', 'deadline']
        : ['interrupted', 'interrupted'];
      fail(unavailable(path, cause, code));
    };
    const timer = setTimeout(() => {
      fail(unavailable(path, `no answer within ${formatDuration(timeoutMs)}`, 'deadline'));
    }, timeoutMs);
    const stop = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', interrupt);
      socket.destroy();
    };
    signal.addEventListener('abort', interrupt);
    if (signal.aborted) return interrupt();
    socket.on('error', (error) => fail(explain(path, error, options.service)));
    collect(socket, (text) => {
      stop();
      resolve(text);
    });
    send(socket);
  });
}

/** Aborted by a deadline of the caller's, rather than by somebody who stops us. */
export function isLate({ reason }: AbortSignal): boolean {
  return reason instanceof Error && reason.name === 'TimeoutError';
}

function collect(socket: Socket, done: (text: string) => void): void {
  const chunks: string[] = [];
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => chunks.push(chunk));
  socket.on('end', () => done(chunks.join('')));
}

function explain(path: string, error: NodeJS.ErrnoException, service: string): UnavailableError {
  const cause = {
    ENOENT: `it is not there: is ${service} running?`,
    ECONNREFUSED: `nobody listens: is ${service} running?`,
    EACCES: `permission denied: ${service} gives it to its user and group`,
  }[error.code ?? ''];
  const told = cause ?? `${error.message} (${service})`;
  return new UnavailableError(`cannot ask HAProxy on ${JSON.stringify(path)}: ${told}`, {
    cause: error,
    ...(error.code === 'ENOENT' ? { code: 'not-running' } : {}),
  });
}

function unavailable(path: string, cause: string, code: string): UnavailableError {
  return new UnavailableError(`cannot ask HAProxy on ${JSON.stringify(path)}: ${cause}`, { code });
}
