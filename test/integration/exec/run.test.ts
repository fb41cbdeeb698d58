import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { CommandError } from '../../../src/lib/errors.ts';
import { createRedactor } from '../../../src/lib/exec/redact.ts';
import { runProgram, streamProgram } from '../../../src/lib/exec/run.ts';
import { openFileStore } from '../../../src/lib/store/file.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { makeTempDir } from '../../support/temp.ts';

const timeoutMs = 30_000;
const sh = (script: string, ...args: string[]) => ['sh', '-c', script, 'sh', ...args] as const;

describe('runProgram', () => {
  it('gives back status, stdout and stderr as they are', async () => {
    const result = await runProgram(sh('printf "out\\n\\n"; echo err >&2'), { timeoutMs });
    expect(result).toEqual({
      status: 0,
      stdout: 'out\n\n',
      stderr: 'err\n',
      stdoutCut: false,
      durationMs: result.durationMs,
    });
  });

  it('hands down nothing but the small environment and what was given', async () => {
    process.env['REEVE_TEST_LEAK'] = 'leak';
    const { stdout } = await runProgram(['env'], { timeoutMs, env: { GIVEN: 'a "b"\n$c' } });
    delete process.env['REEVE_TEST_LEAK'];
    expect(stdout).not.toContain('leak');
    expect(stdout).toContain('GIVEN=a "b"\n$c\n');
    expect(stdout).toContain('PATH=');
  });

  it('takes every argument as it is, without a shell', async () => {
    const { stdout } = await runProgram(['printf', '%s|', '$(id)', 'a b', '', '-n', '*'], { timeoutMs });
    expect(stdout).toBe('$(id)|a b||-n|*|');
  });

  it('gives stdin nothing unless there is input', async () => {
    expect((await runProgram(['cat'], { timeoutMs })).stdout).toBe('');
    expect((await runProgram(['cat'], { timeoutMs, input: 'text' })).stdout).toBe('text');
    expect((await runProgram(['cat'], { timeoutMs, input: Readable.from(['a', 'b']) })).stdout).toBe('ab');
  });

  it('runs where it is told', async () => {
    const cwd = makeTempDir();
    expect((await runProgram(['pwd'], { timeoutMs, cwd })).stdout).toBe(`${cwd}\n`);
  });

  it('keeps the last bytes of a program that talks without end', async () => {
    const result = await runProgram(sh('yes | head -c 5000000; echo end'), { timeoutMs, maxOutputBytes: 10 });
    expect([result.stdout, result.stdoutCut]).toEqual(['y\ny\ny\nend\n', true]);
  });

  it('throws what failed with its status and last lines', async () => {
    const error = await failure(runProgram(sh('echo first >&2; echo last >&2; exit 3'), { timeoutMs }));
    expect(error).toMatchObject({ code: 'status', status: 3, lastLines: 'first\nlast', exitCode: 1 });
    expect(error.message).toBe(
      'cannot run "sh -c echo first >&2; echo last >&2; exit 3 sh": exit status 3: last',
    );
  });

  it('takes other statuses for success where it is told to', async () => {
    const result = await runProgram(sh('exit 24'), { timeoutMs, okStatuses: [0, 24] });
    expect(result.status).toBe(24);
  });

  it('tells a program that is not there from one that failed', async () => {
    const error = await failure(runProgram(['no-such-program', 'x'], { timeoutMs }));
    expect([error.code, error.status, error.message]).toEqual([
      'ENOENT',
      undefined,
      'cannot run "no-such-program x": no such program or directory',
    ]);
  });

  it('tells a signal from a status', async () => {
    const error = await failure(runProgram(sh('kill -KILL $$'), { timeoutMs }));
    expect([error.code, error.message]).toEqual([
      'signal',
      'cannot run "sh -c kill -KILL $$ sh": ended by SIGKILL',
    ]);
  });

  it('redacts secrets in argv and output of an error', async () => {
    const redact = createRedactor(['hunter22']);
    const script = 'echo "password $1" >&2; exit 1';
    const error = await failure(runProgram(sh(script, 'hunter22'), { timeoutMs, redact }));
    expect(error.argv).toEqual(['sh', '-c', script, 'sh', '***']);
    expect(`${error.message} ${error.lastLines}`).not.toContain('hunter22');
    expect(error.lastLines).toBe('password ***');
  });

  it('ends the whole group when the deadline has passed, also what ignores SIGTERM (O40, R59)', async () => {
    const pids = join(makeTempDir(), 'pids');
    const script = `trap "" TERM; sh -c 'trap "" TERM; echo $$ >> ${pids}; sleep 60 & echo $! >> ${pids}; wait' & echo $$ >> ${pids}; wait`;
    const error = await failure(runProgram(sh(script), { timeoutMs: 5_000, killGraceMs: 200 }));
    expect([error.code, error.message.endsWith('no end within 5s')]).toEqual(['timeout', true]);
    await gone(pids, 3);
  });

  it('ends a descendant that outlives its leader without holding its output (R59)', async () => {
    const pids = join(makeTempDir(), 'pids');
    const child = `trap "" TERM; echo $$ >> ${pids}; while :; do sleep 1; done`;
    const script = `sh -c '${child}' > /dev/null 2>&1 < /dev/null & sleep 60`;
    await failure(runProgram(sh(script), { timeoutMs: 5_000, killGraceMs: 10_000 }));
    await gone(pids, 1);
  });

  it('ends it when the signal aborts', async () => {
    const stop = new AbortController();
    const running = runProgram(['sleep', '60'], { timeoutMs, signal: stop.signal });
    stop.abort();
    expect(await failure(running)).toMatchObject({
      code: 'aborted',
      message: 'cannot run "sleep 60": interrupted',
    });
  });

  it('lets it end by itself in the grace time', async () => {
    const script = 'trap "echo settled >&2; exit 0" TERM; while :; do sleep 0.05; done';
    const error = await failure(runProgram(sh(script), { timeoutMs: 5_000, killGraceMs: 20_000 }));
    expect([error.code, error.lastLines.split('\n').at(-1)]).toEqual(['timeout', 'settled']);
  });
});

describe('streamProgram', () => {
  it('streams stdout byte for byte, beyond any limit', async () => {
    const chunks: Uint8Array[] = [];
    const stream = streamProgram(sh('head -c 5000000 /dev/zero; printf "\\377\\r\\n"'), { timeoutMs });
    for await (const chunk of stream) chunks.push(chunk);
    const bytes = Buffer.concat(chunks);
    expect([bytes.length, bytes.subarray(-3)]).toEqual([5_000_003, Buffer.from([0xff, 0x0d, 0x0a])]);
  });

  it('throws at the end when the program failed, so that nothing of it is stored', async () => {
    const store = openFileStore(makeTempDir());
    const dump = streamProgram(sh('head -c 1000000 /dev/zero; echo "server closed" >&2; exit 1'), {
      timeoutMs,
    });
    const error = await failure(store.putStream('backups/a', dump));
    expect([error.code, error.status, error.lastLines]).toEqual(['status', 1, 'server closed']);
    expect(await store.list('')).toEqual([]);
  });

  it('ends the program when the reader stops early', async () => {
    const pids = join(makeTempDir(), 'pids');
    for await (const _ of streamProgram(sh(`echo $$ >> ${pids}; yes`), { timeoutMs })) break;
    await gone(pids, 1);
  });

  it('throws when the deadline passes while the reader waits', async () => {
    const read = async (): Promise<void> => {
      for await (const _ of streamProgram(sh('echo one; sleep 60'), { timeoutMs: 300 }));
    };
    expect(await failure(read())).toMatchObject({ code: 'timeout' });
  });
});

async function failure(running: Promise<unknown>): Promise<CommandError> {
  const error = await running.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof CommandError)) throw new Error(`no CommandError but ${String(error)}`);
  return error;
}

/** Until all processes whose ids the file holds are gone. */
async function gone(file: string, count: number): Promise<void> {
  const pids = readFileSync(file, 'utf8').trim().split('\n').map(Number);
  expect(pids).toHaveLength(count);
  while (pids.some(isRunning)) await systemClock.sleep(10);
}

function isRunning(pid: number): boolean {
  try {
    // A killed process that its parent has not looked at yet is gone for us.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
