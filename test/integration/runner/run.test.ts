// The runner with real programs: what they print, how they end, and that nothing of them is left.
import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type CommandEnd, type RunOptions, runCommand } from '../../../src/lib/runner/run.ts';
import type { CommandSpec } from '../../../src/lib/runner/start.ts';
import { until } from '../../support/balanced.ts';
import { makeTempDir } from '../../support/temp.ts';

const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };

async function run(
  argv: CommandSpec['argv'] | string,
  options: Partial<RunOptions> & Partial<CommandSpec> = {},
): Promise<CommandEnd & { text: string }> {
  const { dir = '/', env: given = env, user, ...rest } = options;
  const spec = {
    ...{ argv: typeof argv === 'string' ? { shell: argv } : argv, dir, env: given },
    ...(user === undefined ? {} : { user }),
  };
  const end = await runCommand(spec, {
    ...{ deadlineMs: 30_000, killGraceMs: 2_000, maxOutputBytes: 65_536 },
    ...{ scratchDir: makeTempDir(), signal: new AbortController().signal },
    ...rest,
  });
  return { ...end, text: Buffer.from(end.output.bytes).toString() };
}

/** Processes that have the mark among their arguments. */
function findMarked(mark: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(mark);
      } catch {
        return false;
      }
    })
    .map(Number);
}

let marks = 0;
/** A number of seconds that no other test sleeps. */
function aMark(): string {
  marks += 1;
  const mark = `8${process.pid % 10_000}.${1000 + marks}`;
  onTestFinished(() => {
    for (const pid of findMarked(mark)) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended by itself.
      }
    }
  });
  return mark;
}

/** The kernel may take a moment for what was killed. */
async function expectNone(mark: string): Promise<void> {
  await until(() => findMarked(mark).length === 0, 5_000);
}

describe('runCommand', () => {
  it('runs a program with its arguments as they are, in its directory, with its environment (A51, A52)', async () => {
    const dir = makeTempDir();
    const end = await run(['sh', '-c', 'pwd; printf "%s|" "$@"; env', 'sh', '$(id)', 'a b', ''], {
      dir,
      env: { ...env, GIVEN: 'a "b"\n$c' },
    });
    expect(end).toMatchObject({ kind: 'exited', code: 0 });
    expect(end.text.startsWith(`${dir}\n$(id)|a b||`)).toBe(true);
    expect(end.text).toContain('GIVEN=a "b"\n$c\n');
    expect(end.text).not.toContain('HOME=');
  });

  it('runs a text in a shell, in its directory, with its environment (A52)', async () => {
    const dir = makeTempDir();
    const end = await run('echo "$GIVEN in $(pwd)" | cat', { dir, env: { ...env, GIVEN: 'here' } });
    expect(end).toMatchObject({ kind: 'exited', code: 0, text: `here in ${dir}\n` });
  });

  it.each([1, 2, 7, 127, 255])('tells exit status %i (A55)', async (code) => {
    expect(await run(`exit ${code}`)).toMatchObject({ kind: 'exited', code });
  });

  it('tells the signal of one that was killed (A55)', async () => {
    expect(await run('kill -KILL $$')).toMatchObject({ kind: 'signalled', signal: 'SIGKILL' });
  });

  it('keeps stdout and stderr in the order in which they were written (A39)', async () => {
    const script = 'i=0; while [ $i -lt 300 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done';
    const lines = Array.from({ length: 300 }, (_, index) => `out ${index}\nerr ${index}\n`);
    expect((await run(script)).text).toBe(lines.join(''));
  });

  it('gives scripts a stderr that they can open by its name', async () => {
    const end = await run('echo one > /dev/stderr; echo two | tee /dev/stderr > /dev/null');
    expect(end).toMatchObject({ kind: 'exited', code: 0, text: 'one\ntwo\n' });
  });

  it.each<[string, Parameters<typeof run>[0], Partial<CommandSpec>, string]>([
    [
      'a program that is not there',
      ['/nowhere/prog'],
      {},
      'cannot run "/nowhere/prog": no such program, or nothing to run it with',
    ],
    ['a file that may not be run', ['/etc/passwd'], {}, 'cannot run "/etc/passwd": permission denied'],
    [
      'a directory that is not there',
      ['true'],
      { dir: '/nowhere' },
      'cannot enter "/nowhere": no such directory',
    ],
    [
      'a directory below a file',
      ['true'],
      { dir: '/etc/passwd/x' },
      'cannot enter "/etc/passwd/x": it, or what stands before it, is no directory',
    ],
    [
      'a directory whose name is too long',
      ['true'],
      { dir: `/${'x'.repeat(300)}` },
      `cannot enter "/${'x'.repeat(300)}": its name is too long`,
    ],
    [
      'a program below a file',
      ['/etc/passwd/x'],
      {},
      'cannot run "/etc/passwd/x": what stands before it is no directory',
    ],
    [
      'a program whose name is too long',
      [`/${'x'.repeat(300)}`],
      {},
      `cannot run "/${'x'.repeat(300)}": its name is too long`,
    ],

    [
      'a directory that is none',
      ['true'],
      { dir: '/etc/passwd' },
      'cannot enter "/etc/passwd": it, or what stands before it, is no directory',
    ],
    [
      'arguments that are too long',
      ['true', 'x'.repeat(300_000)],
      {},
      'cannot run "true": its arguments and its environment are too long',
    ],
  ])('tells why %s does not start', async (_, argv, options, message) => {
    expect(await run(argv, options)).toMatchObject({ kind: 'not-started', message, text: '' });
  });

  it('tells a directory whose links lead in a circle', async () => {
    const dir = join(makeTempDir(), 'circle');
    symlinkSync(dir, dir);
    const message = `cannot enter "${dir}": its links lead in a circle`;
    expect(await run(['true'], { dir })).toMatchObject({ kind: 'not-started', message });
  });

  it('tells an argument that no program can be given', async () => {
    expect(await run(['true', 'a\0b'])).toMatchObject({ kind: 'not-started' });
  });

  it('ends the whole group at the deadline, and keeps what it had printed (A50)', async () => {
    const mark = aMark();
    const end = await run(`echo begun; sleep ${mark} & sleep ${mark}`, { deadlineMs: 5_000 });
    expect(end).toMatchObject({ kind: 'deadline', text: 'begun\n' });
    await expectNone(mark);
  });

  it('lets a command settle when it is cancelled (A49)', async () => {
    const cancel = new AbortController();
    const sink = (chunk: Uint8Array): void => {
      if (Buffer.from(chunk).includes('ready')) cancel.abort();
    };
    const script = 'trap "sleep 0.2; echo settled; exit 0" TERM; echo ready; sleep 30 & wait';
    const end = await run(script, { signal: cancel.signal, sink, killGraceMs: 30_000 });
    expect(end).toMatchObject({ kind: 'cancelled', text: 'ready\nsettled\n' });
  });

  it('ends one that ignores SIGTERM, with all that it has forked (A49)', async () => {
    const mark = aMark();
    const cancel = new AbortController();
    const script = `trap "" TERM; sh -c 'trap "" TERM; while :; do sleep ${mark}; done' & sh -c 'while :; do sleep ${mark}; done' & while :; do sleep ${mark}; done`;
    const running = run(script, { signal: cancel.signal, killGraceMs: 300 });
    await until(() => findMarked(mark).length >= 3);
    const startedAtMs = performance.now();
    cancel.abort();
    expect(await running).toMatchObject({ kind: 'cancelled' });
    expect(performance.now() - startedAtMs).toBeLessThan(5_000);
    await expectNone(mark);
  });

  it('is cancelled at once without a grace (A49)', async () => {
    const mark = aMark();
    const cancel = new AbortController();
    const running = run(`trap "" TERM; sleep ${mark}; sleep ${mark}`, {
      signal: cancel.signal,
      killGraceMs: 0,
    });
    await until(() => findMarked(mark).length > 0);
    cancel.abort();
    expect(await running).toMatchObject({ kind: 'cancelled' });
    await expectNone(mark);
  });

  it('starts nothing once it is cancelled', async () => {
    const file = join(makeTempDir(), 'file');
    const end = await run(`touch ${file}`, { signal: AbortSignal.abort() });
    expect(end).toMatchObject({ kind: 'cancelled', text: '' });
    expect(existsSync(file)).toBe(false);
  });

  it('waits no longer than five seconds for what holds the pipe, and ends it', async () => {
    const mark = aMark();
    const startedAtMs = performance.now();
    const end = await run(`sleep ${mark} & echo gone`);
    const tookMs = performance.now() - startedAtMs;
    expect(end).toMatchObject({ kind: 'exited', code: 0, text: 'gone\n' });
    expect(tookMs).toBeGreaterThan(4_900);
    expect(tookMs).toBeLessThan(10_000);
    await expectNone(mark);
  });

  it('is not held by one that left the group with the pipe', async () => {
    const mark = aMark();
    const end = await run(`setsid sleep ${mark} & exit 3`);
    expect(end).toMatchObject({ kind: 'exited', code: 3 });
  });

  it('gives what left the group with the pipe no second grace once it was told to end', async () => {
    const mark = aMark();
    const startedAtMs = performance.now();
    const script = `trap '' TERM; setsid sleep ${mark} & while :; do sleep ${mark}; done`;
    const end = await run(script, { deadlineMs: 300, killGraceMs: 1_000 });
    expect(end).toMatchObject({ kind: 'deadline' });
    // A second grace would be five seconds more.
    expect(performance.now() - startedAtMs).toBeLessThan(6_000);
  });

  it('waits for a command that has closed its output, and leaves nothing behind it', async () => {
    const mark = aMark();
    const end = await run(`exec >&- 2>&-; sleep ${mark} & sleep 0.5; exit 4`);
    expect(end).toMatchObject({ kind: 'exited', code: 4, text: '' });
    await expectNone(mark);
  });

  it('keeps the tail of a gigabyte, and its memory flat (A54)', async () => {
    const before = process.memoryUsage.rss();
    const most = [0, 0, 0, 0, 0];
    let seen = 0;
    const sink = (chunk: Uint8Array): void => {
      seen += chunk.length;
      const quarter = Math.floor(seen / 2 ** 28);
      most[quarter] = Math.max(most[quarter] ?? 0, process.memoryUsage.rss());
    };
    const end = await run('head -c 1073741824 /dev/zero | tr "\\\\0" x; echo end', { sink });
    expect(end).toMatchObject({ kind: 'exited', code: 0 });
    expect(seen).toBe(1_073_741_828);
    expect(end.output.isCut).toBe(true);
    expect(end.text).toBe(`${'x'.repeat(65_532)}end\n`);
    const [first = 0, , , last = 0] = most;
    expect(last - first).toBeLessThan(32 * 2 ** 20);
    expect(last - before).toBeLessThan(128 * 2 ** 20);
  });

  it('runs as another user, with its groups, where it is told so', async () => {
    const end = await run(['id', '-un'], { user: { uid: 65534, gid: 65534 } });
    expect(end).toMatchObject({ kind: 'exited', code: 0, text: 'nobody\n' });
  });

  it('leaves no name of its pipe behind', async () => {
    const scratchDir = makeTempDir();
    await run('echo', { scratchDir });
    expect(readdirSync(scratchDir)).toEqual([]);
  });
});
