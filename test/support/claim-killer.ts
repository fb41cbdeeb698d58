// Kills a process of reeve every second while a node takes jobs: `claim`, which is started again at once, or any `job run`.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClaimNode } from './claim-node.ts';
import type { ClaimLife } from './ploy/ledger.ts';
import type { Random } from './random.ts';

export type Kills = { claim: number; job: number };

type Claimer = { pid: number; startedAtMs: number; killedAtMs?: number };

export type KillOptions = { random: Random; windowSeconds: number; endsAtMs: number; isOver(): boolean };

/** Looks whether it is over whenever `claim` has ended. */
export async function runAndKill(
  node: ClaimNode,
  { random, windowSeconds, endsAtMs, isOver }: KillOptions,
): Promise<{ lives: ClaimLife[]; kills: Kills }> {
  const kills = { claim: 0, job: 0 };
  const lives: ClaimLife[] = [];
  let current: Claimer | undefined;
  const timer = setInterval(() => killOne(node, current, random, kills), 1_000);
  try {
    while (Date.now() < endsAtMs && !isOver()) {
      const startedAtMs = Date.now();
      const { pid, child } = node.start('claim', '--window', String(windowSeconds));
      current = { pid, startedAtMs };
      const claimer = current;
      // Not until its output ends: jobs that outlive it have that as well.
      await new Promise<void>((resolve) => {
        child.once('exit', () => {
          current = undefined;
          const { killedAtMs } = claimer;
          lives.push({ startedAtMs, endedAtMs: Date.now(), killedAtMs, knownAtEnd: listKnown(node) });
          resolve();
        });
      });
    }
  } finally {
    clearInterval(timer);
  }
  return { lives, kills };
}

/** Of an open or an ended job, or of an answer that was kept whole. */
export function listKnown({ stateDir, openJobs, endedJobs }: ClaimNode): Set<string> {
  const directory = join(stateDir, 'jobs');
  const answers = readNames(directory)
    .filter((name) => name.startsWith('.answer-'))
    .flatMap((name) => /"job_id":"(\w+)".*\n$/.exec(readText(join(directory, name)))?.[1] ?? []);
  return new Set([...answers, ...openJobs(), ...endedJobs()]);
}

function readNames(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function killOne(node: ClaimNode, current: Claimer | undefined, random: Random, kills: Kills): void {
  const runners = findRunners(node);
  const all = [...(current === undefined ? [] : [current.pid]), ...runners];
  if (all.length === 0) return;
  const pid = random.pick(all);
  try {
    process.kill(pid, 'SIGKILL');
    if (current?.pid === pid) current.killedAtMs = Date.now();
    kills[pid === current?.pid ? 'claim' : 'job'] += 1;
  } catch {
    // It has just ended by itself.
  }
}

/**
 * Of this test alone: its own directory is in their arguments. A program that one of them starts has the same arguments for a
 * moment, and is none.
 */
function findRunners(node: ClaimNode): number[] {
  const found = findWithWords(node);
  return found.filter((pid) => !found.includes(readParent(pid)));
}

function readParent(pid: number): number {
  return Number(/^PPid:\s+(\d+)$/m.exec(readText(`/proc/${pid}/status`))?.[1] ?? 0);
}

function findWithWords({ root }: ClaimNode): number[] {
  return readNames('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      const words = readText(`/proc/${pid}/cmdline`);
      return words.includes('\0job\0run\0') && words.includes(root);
    });
}
