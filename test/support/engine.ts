// A real container engine for tests: one of our own per worker (`engineSocket`), or a further one that a test may break.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    engineSockets: readonly string[];
  }
}

const scripts = resolve(import.meta.dirname, '../../scripts');
const directoryPattern = /^reeve-engine-(\d+)(-|$)/;

/** The socket of the worker's engine, which has the images of scripts/images. Containers are the test's to remove. */
export function engineSocket(): string {
  const socket = inject('engineSockets')[Number(process.env['VITEST_POOL_ID']) - 1];
  if (socket === undefined) throw new Error(`worker ${process.env['VITEST_POOL_ID']} has no engine`);
  return socket;
}

export type EngineDirectory = { readonly dir: string };

/** A directory whose name tells whose it is, so that a later run can clear it after a crash. */
export function engineDirectory(name: string): EngineDirectory {
  return { dir: join(tmpdir(), `reeve-engine-${process.pid}-${name}`) };
}

/** Starts or restarts the engine of a directory and gives its socket; throws with dockerd's own words. */
export function startEngine({ dir }: EngineDirectory, env: Readonly<Record<string, string>> = {}): string {
  return runScript('engine', ['start', dir], env).trim();
}

/** Ends the daemon and its containers, gracefully or not; the data stay for `startEngine`. */
export function haltEngine({ dir }: EngineDirectory, how: 'halt' | 'kill' = 'halt'): void {
  runScript('engine', [how, dir]);
}

/** Ends the engine and removes all that is its own. */
export function stopEngine({ dir }: EngineDirectory): void {
  runScript('engine', ['stop', dir]);
}

/** Builds the demo images where they are missing. */
export function buildImages(socket: string): void {
  runScript('images', [socket]);
}

/** Stops the engines of test runs that are no longer alive. */
export function sweepEngines(): void {
  for (const entry of readdirSync(tmpdir())) {
    const pid = directoryPattern.exec(entry)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) stopEngine({ dir: join(tmpdir(), entry) });
  }
}

/** Runs Debian's docker client against an engine: for what a test must see with other eyes than ours. */
export function docker(socket: string, args: readonly string[]): string {
  return run('/usr/bin/docker', ['-H', `unix://${socket}`, ...args]);
}

/** What is being removed already, or has gone just now, an engine refuses to remove: so it is looked for again. */
export async function untilRemoved(remove: () => Promise<void> | void): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await remove();
    } catch (error) {
      if (tries === 50) throw error;
      await sleep(200);
    }
  }
}

function runScript(
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): string {
  return run(join(scripts, name), args, env);
}

function run(file: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  const how = { encoding: 'utf8', timeout: 120_000, maxBuffer: 64 * 1024 * 1024 } as const;
  const result = spawnSync(file, args, { ...how, env: { ...process.env, ...env } });
  if (result.error !== undefined) throw result.error;
  if (result.status !== 0) {
    throw new Error(
      `${file} ${args.join(' ')} ended with ${result.status ?? result.signal}:\n${result.stderr}`,
    );
  }
  return result.stdout;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
