// Runs systemctl and systemd-analyze: without a pager, without colour, in English, never without a deadline.
import { existsSync } from 'node:fs';
import { readInvocation } from '../config/environment.ts';
import { CommandError, ConfigError, UnavailableError } from '../errors.ts';
import type { Clock } from '../time.ts';
import { type ProgramResult, runProgram } from './run.ts';

export type InvocationOptions = { signal: AbortSignal; okStatuses?: readonly number[] };

const env = { LC_ALL: 'C', SYSTEMD_COLORS: '0', SYSTEMD_PAGER: '', SYSTEMD_LOG_LEVEL: 'notice' };

/** A start of a target or a reload of a machine with many units; systemd answers other calls at once. */
const systemctlMs = 60_000;
/** It loads the machine's units anew on each call. */
const analyzeMs = 60_000;

/** As sd_booted(3) has it. */
export function isSystemdRunning(): boolean {
  return existsSync('/run/systemd/system');
}

/** Throws UnavailableError, naming what it is needed for. */
export function requireSystemd(purpose: string): void {
  if (!isSystemdRunning()) throw new UnavailableError(`cannot ${purpose}: systemd does not run here`);
}

const shortestMs = 10_000;

/** What systemd starts again right after its end, and cannot do its work, stays for some seconds: else it would spin. */
export async function stayInUnit(
  { clock, signal }: { clock: Clock; signal: AbortSignal },
  startedAtMs: number,
  atLeastMs = shortestMs,
): Promise<void> {
  const leftMs = Math.min(shortestMs, atLeastMs) - (performance.now() - startedAtMs);
  if (readInvocation().unit && leftMs > 0) await clock.sleep(leftMs, signal);
}

export function runSystemctl(args: readonly string[], options: InvocationOptions): Promise<ProgramResult> {
  return runTool('systemctl', ['--no-pager', '--no-ask-password', ...args], {
    ...options,
    timeoutMs: systemctlMs,
  });
}

export function runAnalyze(args: readonly string[], options: InvocationOptions): Promise<ProgramResult> {
  return runTool('systemd-analyze', ['--no-pager', ...args], { ...options, timeoutMs: analyzeMs });
}

/** What a `--output=json` call lists. */
export async function listAsJson(args: readonly string[], options: InvocationOptions): Promise<unknown> {
  const { stdout } = await runSystemctl([...args, '--output=json'], options);
  try {
    return JSON.parse(stdout.trim() === '' ? '[]' : stdout);
  } catch (error) {
    throw new UnavailableError(`cannot read what systemctl ${args[0]} says: it is no JSON`, { cause: error });
  }
}

async function runTool(
  tool: string,
  args: readonly string[],
  options: InvocationOptions & { timeoutMs: number },
): Promise<ProgramResult> {
  try {
    return await runProgram([tool, ...args], { ...options, env });
  } catch (error) {
    if (!(error instanceof CommandError) || error.code !== 'ENOENT') throw error;
    throw new ConfigError(`cannot run ${tool}: it is not installed (package systemd)`, { cause: error });
  }
}
