// Booted machines for system tests: Debian with systemd and an engine of its own, made by scripts/host in half a second.
// Everything a test does to one goes through its namespaces; nothing of it can reach this machine.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { type Program, type ProgramEnd, startProcess } from './programs.ts';

const scripts = resolve(import.meta.dirname, '../../scripts');
const directoryPattern = /^reeve-host-(\d+)-/;
const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export type RunOptions = { input?: string; env?: Readonly<Record<string, string>> };

export type JournalEntry = {
  unit: string;
  message: string;
  /** Microseconds since 1970. */
  at: number;
  fields: Readonly<Record<string, unknown>>;
};

export type WaitOptions = { timeoutMs?: number; everyMs?: number };

export type Host = {
  readonly name: string;
  /** A directory outside that is /srv/shared inside: sockets in it join what is on both sides. */
  readonly shared: string;
  /** The pid of its systemd outside; another one after a boot. */
  leader(): number;
  /** A path inside as this process can open it; for what must be quick. No link on the way may be absolute. */
  outside(file: string): string;
  /** Starts a program inside, with a plain root's environment. */
  start(argv: readonly string[], env?: Readonly<Record<string, string>>): Program;
  run(argv: readonly string[], options?: RunOptions): Promise<ProgramEnd>;
  /** Runs a program that has to succeed and gives its stdout. */
  output(argv: readonly string[], options?: RunOptions): Promise<string>;
  /** A shell script that has to succeed; its stdout. */
  sh(script: string): Promise<string>;
  /** A file or a tree from outside into a directory inside. */
  copy(outside: string, directory: string): Promise<void>;
  read(file: string): Promise<string>;
  write(file: string, text: string, mode?: string): Promise<void>;
  exists(file: string): Promise<boolean>;
  /** Properties of a unit as systemd tells them. */
  show<Name extends string>(unit: string, ...names: Name[]): Promise<Record<Name, string>>;
  /** What the journal has, oldest first; arguments as of journalctl. */
  journal(...args: string[]): Promise<JournalEntry[]>;
  /** Polls until the condition gives something other than false or undefined; what it throws counts as not yet. */
  waitFor<Value>(
    what: string,
    condition: () => Promise<Value | false | undefined>,
    options?: WaitOptions,
  ): Promise<Value>;
  /** `systemctl reboot`, up to the moment the machine is up again. */
  reboot(): Promise<void>;
  /** Ends everything at once, as a power failure does, and boots again. */
  losePower(): Promise<void>;
  stop(): void;
};

/** Why no machine can be booted here; undefined where one can. A boot that fails is a failure, not a reason to skip. */
export function findHostProblem(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'it needs root on Linux';
  for (const program of ['systemd-nspawn', 'unshare', 'nsenter']) {
    if (spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0) return `it needs ${program}`;
  }
  const probe = spawnSync('unshare', ['--pid', '--mount', '--fork', '--mount-proc', 'true'], {
    encoding: 'utf8',
  });
  if (probe.status !== 0) return `no namespaces can be made: ${probe.stderr.trim()}`;
  return undefined;
}

/** Builds the root file system that machines share where it is missing. */
export function buildHostRoot(): void {
  runScript('root');
}

/** Ends the machines of test runs that are no longer alive. */
export function sweepHosts(): void {
  for (const entry of readdirSync(tmpdir())) {
    const pid = directoryPattern.exec(entry)?.[1];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) runScript('stop', join(tmpdir(), entry));
  }
}

/** Boots a machine; it is the caller's to stop. Its name is the host name inside. */
export function startHost(name: string): Host {
  const dir = mkdtempSync(join(tmpdir(), `reeve-host-${process.pid}-${name}-`));
  try {
    return makeHost(name, dir, Number(runScript('start', dir, name)));
  } catch (error) {
    runScript('stop', dir);
    throw error;
  }
}

function makeHost(name: string, dir: string, firstLeader: number): Host {
  let leader = firstLeader;
  const start: Host['start'] = (argv, env = {}) =>
    startProcess('nsenter', ['-t', `${leader}`, '-a', '--wd', 'env', '-i', ...words(env), ...argv]);

  const run: Host['run'] = async (argv, { input, env } = {}) => {
    const program = start(argv, env);
    program.child.stdin.end(input);
    return await program.ended;
  };

  const output: Host['output'] = async (argv, options) => {
    const end = await run(argv, options);
    if (end.status === 0) return end.stdout;
    const how = end.status ?? end.signal;
    // What a unit failed of, systemctl itself does not say.
    const more = argv[0] === 'systemctl' ? await tellJournal(run) : '';
    throw new Error(`on ${name}, ${argv.join(' ')} ended with ${how}:\n${end.stdout}${end.stderr}${more}`);
  };

  const sh: Host['sh'] = (script) => output(['sh', '-euc', script]);
  const journal: Host['journal'] = async (...args) => {
    // What was said before now may still be on its way to it.
    await output(['journalctl', '--sync']);
    return parseJournal(
      await output(['journalctl', '--no-pager', '--quiet', '-o', 'json', '--all', ...args]),
    );
  };
  const waitFor: Host['waitFor'] = (what, condition, options) =>
    poll({ what, condition, ...options, tellMore: () => tellJournal(run) });

  return {
    ...{ name, shared: join(dir, 'shared'), start, run, output, sh, journal, waitFor },
    leader: () => leader,
    outside: (file) => `/proc/${leader}/root${file}`,
    copy: async (outside, directory) => {
      await output(['mkdir', '-p', directory]);
      // A path below the root of its mount namespace; the directory has no links that would lead out of it.
      const inside = `/proc/${leader}/root${directory}/${basename(outside)}`;
      cpSync(outside, inside, { recursive: true, verbatimSymlinks: true });
    },
    read: (file) => output(['cat', file]),
    write: async (file, text, mode = '0644') => {
      // Whole or not at all: what runs there may look at any time.
      const script = 'mkdir -p "$(dirname "$1")"; cat >"$1.new"; chmod "$2" "$1.new"; mv -T "$1.new" "$1"';
      await output(['sh', '-euc', script, 'sh', file, mode], { input: text });
    },
    exists: async (file) => (await run(['test', '-e', file])).status === 0,
    show: async (unit, ...names) => {
      const text = await output(['systemctl', 'show', unit, `--property=${names.join(',')}`]);
      const pairs = text
        .split('\n')
        .map((line) => [line.split('=', 1)[0], line.slice(line.indexOf('=') + 1)]);
      return Object.fromEntries(pairs.filter(([key]) => key !== ''));
    },
    reboot: async () => {
      const before = leader;
      // It may be ended by what it has asked for.
      const { stderr } = await run(['systemctl', 'reboot']);
      await poll({
        what: `${name} to go down: ${stderr}`,
        condition: async () => !existsSync(`/proc/${before}`),
        timeoutMs: 120_000,
      });
      leader = Number(runScript('start', dir, name));
    },
    losePower: async () => {
      runScript('cut', dir);
      leader = Number(runScript('start', dir, name));
    },
    stop: () => {
      runScript('stop', dir);
    },
  };
}

function words(env: Readonly<Record<string, string>>): string[] {
  const all = { PATH: path, HOME: '/root', LANG: 'C.UTF-8', ...env };
  return Object.entries(all).map(([key, value]) => `${key}=${value}`);
}

function parseJournal(text: string): JournalEntry[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const fields: Record<string, unknown> = JSON.parse(line);
      return {
        unit: String(fields['_SYSTEMD_UNIT'] ?? fields['UNIT'] ?? ''),
        message: String(fields['MESSAGE'] ?? ''),
        // When it was said; the journal may have got it later.
        at: Number(fields['_SOURCE_REALTIME_TIMESTAMP'] ?? fields['__REALTIME_TIMESTAMP']),
        fields,
      };
    });
}

/** The last lines of the journal: without them a condition that never came says nothing. */
async function tellJournal(run: Host['run']): Promise<string> {
  const end = await run(['journalctl', '--no-pager', '-n', '60', '-o', 'short-precise']);
  return `\nits journal ends with\n${end.stdout}${end.stderr}`;
}

async function poll<Value>({
  what,
  condition,
  timeoutMs = 60_000,
  everyMs = 50,
  tellMore,
}: {
  what: string;
  condition: () => Promise<Value | false | undefined>;
  tellMore?: () => Promise<string>;
} & WaitOptions): Promise<Value> {
  const deadline = performance.now() + timeoutMs;
  let last = '';
  for (;;) {
    try {
      const value = await condition();
      if (value !== false && value !== undefined) return value;
      last = '';
    } catch (error) {
      last = `: ${error instanceof Error ? error.message : String(error)}`;
    }
    if (performance.now() > deadline) {
      throw new Error(`waited ${timeoutMs} ms in vain for ${what}${last}${(await tellMore?.()) ?? ''}`);
    }
    await new Promise((tick) => setTimeout(tick, everyMs));
  }
}

function runScript(action: string, ...args: string[]): string {
  const result = spawnSync(join(scripts, 'host'), [action, ...args], { encoding: 'utf8', timeout: 300_000 });
  if (result.error !== undefined) throw result.error;
  if (result.status !== 0) {
    throw new Error(`host ${action} ended with ${result.status ?? result.signal}:\n${result.stderr}`);
  }
  return result.stdout.trim();
}
