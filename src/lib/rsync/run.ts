// Runs rsync: with deadlines in layers, bounded memory and file sizes whatever the other side sends, and its exit statuses told apart.
import { access } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { BaseContext } from '../context.ts';
import { CommandError, ConfigError, type ReeveError, StepError, UnavailableError } from '../errors.ts';
import { findProgram } from '../exec/find.ts';
import { type Argv, streamProgram } from '../exec/run.ts';
import { formatDuration } from '../time.ts';
import { kindOfPlace } from './place.ts';
import { buildRemoteShell, listKeyFiles, sshDirectory } from './ssh.ts';
import { explainStatus, judgeStatus, pickComplaints, type RsyncVerdict } from './status.ts';

export type RsyncRun = {
  /** For messages: `pull from "deploy@control:/x/"`. */
  what: string;
  args: readonly string[];
  input?: string;
  timeoutMs: number;
  /** Larger files cannot be written, whatever the other side has announced. */
  maxFileBytes?: number;
  /** Each line that it prints. False: enough, it is ended. */
  onLine?: (line: string) => boolean;
};

export type RsyncEnd =
  /** `error`: what to tell, where it is neither complete nor only vanished. */
  | { verdict: RsyncVerdict; error?: ReeveError }
  /** It was ended since `onLine` said so. */
  | { verdict: 'stopped'; error?: undefined };

/** Far more than a list of some thousand names takes, in rsync and in ssh. */
const mostMemoryBytes = 512 * 1024 * 1024;
const killGraceMs = 3_000;

/** Throws only where rsync cannot be run at all, or where we are to end. */
export async function runRsync({ signal }: Pick<BaseContext, 'signal'>, run: RsyncRun): Promise<RsyncEnd> {
  const { input, timeoutMs, onLine = () => true } = run;
  const output = streamProgram(buildArgv(run), {
    // Names and times are told in a form that holds on any machine.
    ...{ env: { LC_ALL: 'C', TZ: 'UTC' }, timeoutMs, killGraceMs, signal, maxOutputBytes: 64 * 1024 },
    ...(input === undefined ? {} : { input }),
  });
  try {
    for await (const line of splitLines(output)) if (!onLine(line)) return { verdict: 'stopped' };
    return { verdict: 'complete' };
  } catch (error) {
    if (!(error instanceof CommandError) || error.code === 'aborted') throw error;
    return await explainEnd(run, error);
  }
}

/** What `-e` is to be for a place; undefined where no ssh is needed. */
export async function findRemoteShell(
  { paths }: { paths: Pick<BaseContext['paths'], 'configFile'> },
  place: string,
  direction: 'pull' | 'push',
): Promise<string | undefined> {
  if (kindOfPlace(place) !== 'ssh') return undefined;
  const directory = sshDirectory(dirname(paths.configFile));
  const configFile = join(directory, 'config');
  const hasConfig = await access(configFile).then(
    () => true,
    () => false,
  );
  return buildRemoteShell({
    ...(hasConfig ? { configFile } : {}),
    keyFiles: listKeyFiles(directory, direction),
    knownHostsFile: join(directory, 'known_hosts'),
  });
}

function buildArgv({ args, maxFileBytes }: RsyncRun): Argv {
  const fileSize = maxFileBytes === undefined ? [] : [`--fsize=${maxFileBytes}`];
  return ['prlimit', `--as=${mostMemoryBytes}`, ...fileSize, '--', 'rsync', ...args];
}

async function explainEnd({ what, timeoutMs }: RsyncRun, error: CommandError): Promise<RsyncEnd> {
  const { status, code, lastLines } = error;
  const complaints = pickComplaints(lastLines, status);
  const tell = (cause: string): string => `cannot ${what}: ${cause}${complaints && `: ${complaints}`}`;
  if (code === 'timeout') {
    const cause = tell(`no end within ${formatDuration(timeoutMs)}`);
    return { verdict: 'unreachable', error: new UnavailableError(cause, { code: 'rsync-timeout' }) };
  }
  // 127 is ssh's word for a far side without rsync as well.
  if (code === 'ENOENT' || (status === 127 && (await findProgram('rsync')) === undefined)) {
    throw new ConfigError(`cannot ${what}: rsync is not installed (packages rsync and util-linux)`);
  }
  if (status === undefined) {
    const cause = tell(code === 'signal' ? 'rsync was killed' : `rsync did not start (${code})`);
    return { verdict: 'failed', error: new StepError(cause, { code: 'rsync' }) };
  }
  const verdict = judgeStatus(status);
  if (verdict === 'complete' || verdict === 'vanished') return { verdict };
  const details = { code: `rsync-${status}` };
  const message = tell(explainStatus(status));
  const isAway = verdict === 'unreachable';
  return {
    verdict,
    error: isAway ? new UnavailableError(message, details) : new StepError(message, details),
  };
}

/** Longer ones are no names. */
const mostLineBytes = 16 * 1024;

async function* splitLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of chunks) {
    const lines = (rest + Buffer.from(chunk).toString('latin1')).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
    if (rest.length > mostLineBytes) rest = rest.slice(0, mostLineBytes);
  }
  if (rest !== '') yield rest;
}
