// A node that listens: `reeve listen` as a process, or one queue of it in this process at a quicker pace.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';
import { resolvePaths } from '../../src/lib/config/paths.ts';
import { listenToQueue, type Pace, type QueueReport } from '../../src/lib/listen/queue.ts';
import { openQueues } from '../../src/lib/listen/queues.ts';
import { silentLog } from '../../src/lib/report/log.ts';
import { systemClock } from '../../src/lib/time.ts';
import { onTestFinished } from './after-test.ts';
import { cloudRegion } from './cloud.ts';
import { type Machine, makeMachine } from './machine.ts';
import type { Program } from './programs.ts';
import { makeTempDir } from './temp.ts';

export type Ear = {
  /** Level and text of each line. */
  readonly lines: string[];
  /** Wakes that are there now. */
  wakes(): string[];
  clearWakes(): void;
  stop(): void;
  readonly ended: Promise<QueueReport>;
};

const quick: Pace = { pollSeconds: 1, emptyMs: 1_000, missingMs: 300, failureMs: 200 };

export function startEar(
  endpoint: string,
  env: Readonly<Record<string, string>>,
  {
    name,
    windowMs,
    answerMs = 1_000,
    ...pace
  }: { name: string; windowMs: number; answerMs?: number; emptyMs?: number },
): Ear {
  for (const [variable, value] of Object.entries(env)) vi.stubEnv(variable, value);
  const root = makeTempDir();
  const paths = resolvePaths({}, { REEVE_RUN: root });
  const lines: string[] = [];
  const tell =
    (level: string) =>
    (message: string): void =>
      void lines.push(`${level}: ${message}`);
  const log = { ...silentLog, warning: tell('warning'), info: tell('info') };
  const controller = new AbortController();
  const ctx = { clock: systemClock, log, paths, signal: controller.signal };
  const window = { untilMs: performance.now() + windowMs, pace: { ...quick, ...pace } };
  const listen = async (): Promise<QueueReport> => {
    const limit = { signal: controller.signal, deadlineMs: answerMs };
    const queues = await openQueues({ region: cloudRegion, endpoint }, limit);
    return await listenToQueue(ctx, queues, { name, concern: 'reconcile', window });
  };
  const ended = listen();
  onTestFinished(() => controller.abort());
  return {
    lines,
    wakes: () => (existsSync(paths.wakeDir) ? readdirSync(paths.wakeDir).sort() : []),
    clearWakes: () => rmSync(paths.wakeDir, { recursive: true, force: true }),
    stop: () => controller.abort(new Error('stopped')),
    ended,
  };
}

export type ListeningNode = {
  readonly machine: Machine;
  start(...words: string[]): Program;
  wakes(): string[];
};

export function makeListeningNode(
  env: Readonly<Record<string, string>>,
  cluster: Readonly<Record<string, unknown>> = {},
): ListeningNode {
  const machine = makeMachine({
    cluster: { nodeId: 'web-1', region: cloudRegion, notify: 'sns', ...cluster },
  });
  const directory = join(machine.root, 'run/wake');
  return {
    machine,
    start: (...words) => {
      const program = machine.start(['listen', ...words], env);
      onTestFinished(() => void program.child.kill('SIGKILL'));
      return program;
    },
    wakes: () => (existsSync(directory) ? readdirSync(directory).sort() : []),
  };
}
