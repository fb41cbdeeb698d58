// The real HAProxy in the foreground, as reeve-balancer.service has it, on sockets and a port of its own.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { renderBalancerFile } from '../../src/lib/edge/balancer-file.ts';
import { balancerFile, masterSocket, runtimeSocket } from '../../src/lib/edge/balancer-path.ts';
import { askRuntime } from '../../src/lib/haproxy/runtime.ts';
import { onTestFinished } from './after-test.ts';
import { freePort } from './ports.ts';
import { type Program, type ProgramEnd, startProcess } from './programs.ts';
import { makeTempDir } from './temp.ts';

export type HaproxyOptions = {
  /** REEVE_CACHE of the edge that writes its file; default: a directory of its own. */
  cacheDir?: string;
  /** Where its sockets are; default: a directory of its own. */
  directory?: string;
  /** Default: a free port of the loopback. */
  address?: string;
  /** Tests that run side by side pass their own hook. */
  whenFinished?: (clean: () => Promise<void> | void) => void;
};

export type Haproxy = {
  readonly address: string;
  readonly directory: string;
  readonly cacheDir: string;
  /** Of the master. */
  readonly pid: number;
  /** Everything that it has written since its first start. */
  log(): string;
  /** The workers there are, old ones of earlier reloads among them. */
  workers(): number[];
  /** With `kill -9`, workers and all. */
  kill(): Promise<void>;
  /** After an end; waits until it answers. */
  start(): Promise<void>;
};

/** Long enough for a busy machine. */
const startTimeoutMs = 30_000;

/** Starts from the file that is there, or from one without routes. */
export async function startHaproxy(options: HaproxyOptions = {}): Promise<Haproxy> {
  const { whenFinished = onTestFinished } = options;
  const cacheDir = options.cacheDir ?? makeTempDir(whenFinished);
  const directory = options.directory ?? makeTempDir(whenFinished);
  const address = options.address ?? `127.0.0.1:${await freePort()}`;
  const file = balancerFile({ cacheDir });
  if (!existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, renderBalancerFile([]).text);
  }
  const run = (): { program: Program; ended: Promise<ProgramEnd> } => {
    const argv = ['-W', '-S', `${masterSocket({ directory })},mode,660`, '-f', file];
    const env = { REEVE_BALANCER_BIND: address, REEVE_BALANCER_DIRECTORY: directory };
    const program = startProcess(join('/usr/sbin', 'haproxy'), argv, env);
    program.child.stderr.on('data', (chunk: Buffer) => {
      log += chunk.toString();
    });
    return { program, ended: program.ended };
  };
  let log = '';
  let running = run();
  const haproxy: Haproxy = {
    address,
    directory,
    cacheDir,
    get pid() {
      return running.program.pid;
    },
    log: () => log,
    workers: () => childrenOf(running.program.pid),
    kill: async () => {
      const pids = [running.program.pid, ...haproxy.workers()];
      for (const pid of pids) killIfThere(pid);
      await running.ended;
    },
    start: async () => {
      running = run();
      await waitUntilReady(haproxy);
    },
  };
  whenFinished(() => haproxy.kill());
  await waitUntilReady(haproxy);
  return haproxy;
}

async function waitUntilReady({ directory, log }: Haproxy): Promise<void> {
  const signal = AbortSignal.timeout(startTimeoutMs);
  for (;;) {
    const options = { signal, service: 'haproxy' };
    const isReady = await askRuntime(runtimeSocket({ directory }), ['show version'], options).then(
      () => true,
      () => false,
    );
    if (isReady) return;
    if (signal.aborted) throw new Error(`HAProxy does not answer: ${log()}`);
    await sleep(20);
  }
}

export function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

export function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}
