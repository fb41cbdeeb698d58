// The node's proxy as its unit has it: the real HAProxy in the foreground with the shipped file, on maps, sockets and a port of
// its own, and what reeve does around it.
import { mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Paths, resolvePaths } from '../../src/lib/config/paths.ts';
import { parseWorkers } from '../../src/lib/haproxy/parse-workers.ts';
import { askMaster, askWorker } from '../../src/lib/haproxy/runtime.ts';
import { type ProxyPaths, proxyPaths } from '../../src/lib/proxy/paths.ts';
import type { ProxyContext } from '../../src/lib/proxy/registry.ts';
import { registerInstance } from '../../src/lib/proxy/set.ts';
import { prepareProxy } from '../../src/lib/proxy/sync.ts';
import { type Log, silentLog } from '../../src/lib/report/log.ts';
import { systemClock } from '../../src/lib/time.ts';
import { onTestFinished } from './after-test.ts';
import { until } from './balanced.ts';
import { childrenOf, killIfThere } from './haproxy.ts';
import { freePort } from './ports.ts';
import { type Program, startProcess } from './programs.ts';
import { makeTempDir } from './temp.ts';

const proxyFile = resolve(import.meta.dirname, '../../systemd/reeve-proxy.cfg');

export type TestProxy = {
  readonly address: string;
  readonly port: number;
  readonly paths: Paths;
  readonly at: ProxyPaths;
  readonly ctx: ProxyContext;
  /** What reeve has warned of. */
  readonly warnings: string[];
  /** What else it has told. */
  readonly messages: string[];
  /** Of the master. */
  readonly pid: number;
  workers(): number[];
  log(): string;
  set(instance: string, port: number): Promise<void>;
  /** One command to the current worker, past reeve. */
  tell(command: string): Promise<string>;
  /** SIGUSR2; resolves once a new worker serves, and the one before takes nothing any more. */
  reload(): Promise<void>;
  /** SIGUSR2 with a map that cannot be read; resolves once the reload has failed, and mends the map. */
  failReload(): Promise<void>;
  /** As ExecStop= ends it after the drain; then the sockets are removed, as by ExecStopPost=. */
  stop(): Promise<void>;
  kill(): Promise<void>;
  /** Its unit's start: the files, then HAProxy. */
  start(host?: string): Promise<void>;
};

export type ProxyOptions = {
  /** `commands.proxy_backend_host`. */
  host?: string;
  env?: Readonly<Record<string, string>>;
  /** REEVE_RUN; default: a directory of its own. */
  runDir?: string;
};

const startTimeoutMs = 30_000;

export async function startProxy({ host = '127.0.0.1', ...options }: ProxyOptions = {}): Promise<TestProxy> {
  const proxy = await makeProxy(options);
  await proxy.start(host);
  return proxy;
}

/** Not started yet. */
export async function makeProxy({
  env = {},
  runDir = join(makeTempDir(), 'run'),
}: Omit<ProxyOptions, 'host'> = {}): Promise<TestProxy> {
  const paths = resolvePaths({}, { REEVE_RUN: runDir });
  const at = proxyPaths(paths);
  mkdirSync(`${paths.runDir}-proxy`, { recursive: true });
  const port = await freePort();
  const warnings: string[] = [];
  const messages: string[] = [];
  const ctx = makeProxyContext(paths, warnings, messages);
  let running: Program | undefined;
  let log = '';
  const run = (): void => {
    const argv = ['-W', '-S', `${at.masterSocket},mode,660`, '-f', proxyFile];
    const own = {
      REEVE_PROXY_BIND: `127.0.0.1:${port}`,
      REEVE_PROXY_MAPS: at.directory,
      REEVE_PROXY_SOCKETS: `${paths.runDir}-proxy`,
    };
    running = startProcess('/usr/sbin/haproxy', argv, { ...own, ...env });
    running.child.stderr.on('data', (chunk: Buffer) => {
      log += chunk.toString();
    });
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (running === undefined) return;
    if (signal === 'SIGKILL') for (const pid of [running.pid, ...proxy.workers()]) killIfThere(pid);
    else process.kill(running.pid, signal);
    await running.ended;
    running = undefined;
    for (const socket of [at.masterSocket, at.runtimeSocket]) rmSync(socket, { force: true });
  };
  const options = { signal: ctx.signal, service: 'haproxy' };
  const currentWorker = async (): Promise<number | undefined> => {
    const processes = await askMaster(at.masterSocket, 'show proc', options).catch(() => '');
    return parseWorkers(processes).find(({ isOld }) => !isOld)?.pid;
  };
  const hasStopped = async (pid: number): Promise<boolean> => {
    const asked = askWorker(at.masterSocket, pid, ['show info'], options);
    // Undefined: it has ended.
    const told = await asked.then((answers) => answers?.[0] ?? 'Stopping: 1').catch(() => '');
    return /^Stopping: 1$/m.test(told);
  };
  const proxy: TestProxy = {
    ...{ address: `127.0.0.1:${port}`, port, paths, at, ctx, warnings, messages },
    get pid() {
      return running?.pid ?? 0;
    },
    workers: () => (running === undefined ? [] : childrenOf(running.pid)),
    log: () => log,
    set: async (instance, instancePort) => void (await registerInstance(ctx, instance, instancePort)),
    tell: async (command) => {
      const answers = await askWorker(at.masterSocket, (await currentWorker()) ?? 0, [command], options);
      return answers?.[0] ?? '';
    },
    reload: async () => {
      const before = await currentWorker();
      if (before === undefined) throw new Error(`no worker serves: ${log}`);
      process.kill(proxy.pid, 'SIGUSR2');
      await until(async () => {
        const now = await currentWorker();
        return now !== undefined && now !== before && (await hasStopped(before ?? 0));
      });
    },
    failReload: async () => {
      renameSync(at.hostMap, `${at.hostMap}.away`);
      process.kill(proxy.pid, 'SIGUSR2');
      await until(async () => {
        const processes = await askMaster(at.masterSocket, 'show proc', options).catch(() => '');
        return /\[failed: [1-9]/.test(processes);
      });
      renameSync(`${at.hostMap}.away`, at.hostMap);
    },
    stop: () => end('SIGUSR1'),
    kill: () => end('SIGKILL'),
    start: async (host) => {
      await prepareProxy(ctx, { proxyBackendHost: host ?? '127.0.0.1' });
      run();
      for (const limit = performance.now() + startTimeoutMs; (await currentWorker()) === undefined; ) {
        if (performance.now() > limit) throw new Error(`HAProxy does not answer: ${log}`);
        await sleep(20);
      }
    },
  };
  onTestFinished(() => proxy.kill());
  return proxy;
}

function makeProxyContext(paths: Paths, warnings: string[], messages: string[]): ProxyContext {
  return {
    ...{ paths, clock: systemClock, runId: 'test', command: 'proxy test' },
    signal: new AbortController().signal,
    log: {
      ...silentLog,
      warning: (message) => void warnings.push(message),
      info: (message) => void messages.push(message),
    } satisfies Log,
  };
}

/** Refused, and with the tunnels counted that are open then. */
export async function untilDraining({ messages }: TestProxy): Promise<void> {
  await until(() => messages.some((message) => message.startsWith('new tunnels are refused')));
}

export function readRegistry({ at }: TestProxy): string {
  return readFileSync(at.instancesMap, 'utf8');
}
