// Makes the machine's units those of a configuration: drop-ins, what is switched on, and where systemd runs a reload.
// Every file is replaced whole, so that two at once end in the same state.
import { mkdir, rename, rm, rmdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ReeveError } from '../errors.ts';
import { isSystemdRunning, runSystemctl } from '../exec/systemd.ts';
import { fileError } from '../state/file-error.ts';
import { dropInPath, wantsPath } from './gather.ts';
import type { UnitChange } from './plan.ts';
import {
  balancerService,
  balancerUnits,
  proxyUnits,
  roleTargets,
  rootTarget,
  unitDirectory,
} from './units.ts';

export type ApplyOptions = {
  root: string;
  signal: AbortSignal;
  /** Where HAProxy's sockets are on an edge; undefined without a cluster. */
  balancerDirectory: string | undefined;
};

/**
 * Answers whether this machine's systemd now runs what is switched on. What it has not started it does not start: a
 * `reeve.target` that a person stopped stays stopped.
 */
export async function applyUnits(
  changes: readonly UnitChange[],
  options: ApplyOptions,
): Promise<{ running: boolean }> {
  for (const change of changes) await applyChange(change, options.root);
  if (options.root !== '/' || !isSystemdRunning()) return { running: false };
  if (changes.length > 0) await runSystemctl(['daemon-reload'], options);
  const { status } = await runSystemctl(['is-active', '--quiet', rootTarget], { ...options, okStatuses });
  const running = status === 0;
  if (running) await followChanges(changes, options);
  return { running };
}

/** systemctl is-active: 3 for a unit that is not, 4 for one that is not there. */
const okStatuses = [0, 3, 4];

async function followChanges(changes: readonly UnitChange[], options: ApplyOptions): Promise<void> {
  const leaving = new Set(changes.filter(({ kind }) => kind === 'disable').map(({ unit }) => unit));
  const isBalanced =
    changes.some(({ unit }) => balancerUnits.includes(unit)) && !leaving.has(roleTargets.edge);
  const isBalancerLeaving = balancerUnits.some((unit) => leaving.has(unit));
  if (isBalanced && isBalancerLeaving) await leaveBalancer(options);
  for (const change of changes) await followChange(change, leaving, options);
  if (isBalanced && !isBalancerLeaving) await runSystemctl(['start', '--no-block', edgeService], options);
}

const edgeService = 'reeve-edge.service';
const anyStatus = [0, 1];

/** Caddy closes a connection on which nothing has come for five seconds; until then the request comes by the old way. */
const lateMs = 5_000;
const underWayMs = 10_000;

/**
 * Caddy is told not to use HAProxy before that goes, and what is under way through it may end: Caddy tries nothing again
 * that it has begun with a configuration that is no longer its own.
 */
async function leaveBalancer(options: ApplyOptions): Promise<void> {
  const { balancerDirectory: directory, signal } = options;
  // The first one may join a run under way, which has read other settings. What is wrong with a run its own record tells.
  for (let run = 0; run < 2; run += 1) {
    await runSystemctl(['start', edgeService], { ...options, okStatuses: anyStatus }).catch(() => {});
  }
  if (directory === undefined) return;
  const { waitUntilUnused } = await import('../haproxy/unused.ts');
  // As the unit names it.
  const socket = join(directory, 'master.sock');
  const bounds = { leastMs: lateMs, mostMs: underWayMs };
  await waitUntilUnused(socket, { signal, service: balancerService, ...bounds });
}

async function followChange(
  { kind, unit }: UnitChange,
  leaving: ReadonlySet<string>,
  options: ApplyOptions,
): Promise<void> {
  // Its tunnels have time to end, longer than anybody waits here.
  const how = proxyUnits.includes(unit) ? ['--no-block'] : [];
  if (kind === 'enable') await runSystemctl(['start', unit], options);
  else if (kind === 'disable') await runSystemctl(['stop', ...how, unit], options);
  // Started anew only to be stopped, a service would be cut in its start, which systemd calls a failure.
  else if (keepsItsSettings(unit) && !leaving.has(unit)) {
    await runSystemctl(['try-restart', ...how, unit], options);
  }
}

/**
 * What runs keeps what it began with: a timer its moment, a path what it watches, a socket its address. A oneshot reads its
 * own anew each time, and a service of others is not restarted: that would close what it serves.
 */
function keepsItsSettings(unit: string): boolean {
  return /\.(timer|path|socket)$/.test(unit) || balancerUnits.includes(unit);
}

async function applyChange(change: UnitChange, root: string): Promise<void> {
  const path = pathOf(change, root);
  try {
    switch (change.kind) {
      case 'write':
        return await replaceFile(path, change.text);
      case 'remove':
      case 'disable':
        await rm(path, { force: true });
        return await removeIfEmpty(dirname(path));
      case 'enable':
        return await replaceLink(path, join(unitDirectory, change.unit));
    }
  } catch (error) {
    if (error instanceof ReeveError) throw error;
    throw fileError(change.kind === 'write' || change.kind === 'enable' ? 'write' : 'remove', path, error);
  }
}

function pathOf(change: UnitChange, root: string): string {
  const isLink = change.kind === 'enable' || change.kind === 'disable';
  return isLink ? wantsPath(root, change.unit) : dropInPath(root, change.unit);
}

async function replaceFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o755 });
  // Read by all, like every unit file; systemd does not look at names without .conf.
  const temporary = `${path}.${process.pid}.tmp`;
  await writeFile(temporary, text, { mode: 0o644 });
  await rename(temporary, path);
}

async function replaceLink(path: string, target: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o755 });
  const temporary = `${path}.${process.pid}.tmp`;
  await rm(temporary, { force: true });
  await symlink(target, temporary);
  await rename(temporary, path);
}

/** Whatever else is in it belongs to somebody. */
async function removeIfEmpty(directory: string): Promise<void> {
  await rmdir(directory).catch(() => {});
}
