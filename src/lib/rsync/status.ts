// What rsync's exit status means to whoever ran it, and which of its words are worth repeating. Pure.

/**
 * `complete`: all of it. `vanished`: all but what has gone meanwhile. `partial`: some of it has not come. `unreachable`: the other
 * side, or the way to it; the next try may well do. `failed`: all else, which trying again seldom cures.
 */
export type RsyncVerdict = 'complete' | 'vanished' | 'partial' | 'unreachable' | 'failed';

const meanings: Readonly<Record<number, [verdict: RsyncVerdict, text: string]>> = {
  0: ['complete', 'complete'],
  1: ['failed', 'an option is not understood, or not allowed'],
  2: ['failed', 'the versions of rsync do not fit'],
  3: ['failed', 'a directory cannot be used'],
  4: ['failed', 'the other rsync cannot do it'],
  5: ['unreachable', 'the other side did not begin'],
  10: ['unreachable', 'the connection failed'],
  11: ['failed', 'a file cannot be read or written'],
  12: ['unreachable', 'the connection broke off, or the other side refused it'],
  14: ['failed', 'its processes cannot talk to each other'],
  20: ['unreachable', 'it was interrupted'],
  22: ['failed', 'not enough memory for what there is'],
  23: ['partial', 'some files were not transferred'],
  24: ['vanished', 'some files vanished meanwhile'],
  30: ['unreachable', 'no answer for too long'],
  35: ['unreachable', 'no connection in time'],
  124: ['failed', 'the command failed on the other side'],
  125: ['unreachable', 'the command was killed on the other side'],
  126: ['failed', 'the command cannot be run on the other side'],
  127: ['failed', 'there is no such command'],
  255: ['unreachable', 'ssh cannot connect'],
};

export function judgeStatus(status: number): RsyncVerdict {
  return meanings[status]?.[0] ?? 'failed';
}

/** `no answer for too long (30)`. */
export function explainStatus(status: number): string {
  return `${meanings[status]?.[1] ?? 'it failed'} (${status})`;
}

const mostLines = 3;
const mostCharacters = 600;

/** What ssh ends with. rsync may have ended before, with 12, as the pipe to it was closed. */
const endOfSsh =
  /^ssh: |^Host key verification failed|^Connection (closed|reset) by |: Permission denied \([a-z,-]+\)/;

/**
 * The first of rsync's complaints, which are the cause: the last ones only add up. Of ssh's the last, which come after its warnings. Of
 * rrsync, a program in Python, what it fell over, and not where.
 */
export function pickComplaints(output: string, status?: number): string {
  const lines = dropFrames(output.split('\n')).map((line) => line.trim());
  const telling = lines.filter((line) => line !== '' && !isSummary(line));
  const chosen = telling.length > 0 ? telling : lines.filter((line) => line !== '');
  const isOfSsh = status === 255 || chosen.some((line) => endOfSsh.test(line));
  const few = isOfSsh ? chosen.slice(-mostLines) : chosen.slice(0, mostLines);
  return few.join('; ').slice(0, mostCharacters);
}

/** Whether the head of a traceback is there or cut off: its frames are what is indented. */
function dropFrames(lines: readonly string[]): readonly string[] {
  if (!lines.some((line) => /^\s+File ".*", line \d+/.test(line))) return lines;
  return lines.filter((line) => !/^\s|^Traceback \(|^(During handling of|The above) .*exception/.test(line));
}

function isSummary(line: string): boolean {
  return line.startsWith('rsync error:') || /^rsync: connection unexpectedly closed/.test(line);
}
