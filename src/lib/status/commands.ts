// How this node stands with the commands of its control plane, and with the instances that its proxy leads to. Read-only.
import { type CommandsSurvey, surveyCommands } from '../commands/survey.ts';
import type { CommandsConfig } from '../config/config.ts';
import type { Context } from '../context.ts';
import { describeError, UnavailableError } from '../errors.ts';
import { readBeatsTo } from '../heartbeat/beats.ts';
import { readDraining } from '../proxy/list.ts';
import { ignoreAbsence, readInstances } from '../proxy/registry.ts';
import { countTunnels } from '../proxy/tunnels.ts';
import { foldLines } from '../report/table.ts';
import { formatDuration } from '../time.ts';
import { ago } from './ago.ts';

export type CommandsView = CommandsSurvey & {
  machineId: number;
  controlPlane: {
    /** Null: nobody is told of this machine. */
    origin: string | null;
    lastToldAt: string | null;
    /** Of the last heartbeat, where it failed. */
    error: string | null;
  };
  proxy: {
    instances: readonly { instance: string; port: number }[];
    /** New tunnels are refused. */
    draining: boolean;
    running: boolean;
    /** Null where HAProxy does not run, or cannot be asked, for which `error` has the reason. */
    activeTunnels: number | null;
    workers: number;
    error?: string;
  };
};

export async function readCommandsView(ctx: Context, commands: CommandsConfig): Promise<CommandsView> {
  const { machineId, centralBaseUrl } = commands;
  const origin = centralBaseUrl === '' ? null : new URL(centralBaseUrl).origin;
  const [survey, beats, proxy] = await Promise.all([
    surveyCommands(ctx),
    readBeatsTo(ctx, 'commands', origin ?? undefined),
    readProxy(ctx),
  ]);
  return {
    machineId,
    ...survey,
    controlPlane: {
      origin,
      lastToldAt: beats?.lastOkAt ?? null,
      error: beats?.lastError ?? null,
    },
    proxy,
  };
}

async function readProxy(ctx: Context): Promise<CommandsView['proxy']> {
  const instances = [...(await readInstances(ctx))].map(([instance, port]) => ({ instance, port }));
  const known = { instances, draining: await readDraining(ctx) };
  const absent = { running: false, activeTunnels: null, workers: 0 };
  try {
    const tunnels = await countTunnels(ctx).catch(ignoreAbsence);
    // A start ends the drain before.
    if (tunnels === undefined) return { instances, draining: false, ...absent };
    return { ...known, running: true, activeTunnels: tunnels.total, workers: tunnels.workers.length };
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    return { ...known, ...absent, error: describeError(error) };
  }
}

export function renderCommandsView(view: CommandsView, now: Date): string[] {
  const { machineId, running, waiting, succeeded, failed, lost, damaged } = view;
  const [oldest] = running;
  const since = oldest === undefined ? 0 : Math.max(0, now.getTime() - Date.parse(oldest.startedAt));
  const first =
    oldest === undefined ? '' : `, the oldest for ${formatDuration(since)} (${foldLines(oldest.jobId)})`;
  return [
    `commands of machine ${machineId}: ${running.length} running${first}, ${waiting} waiting; kept: ${succeeded} succeeded, ${failed} failed`,
    ...(lost.length === 0 ? [] : [`commands whose process is gone: ${foldLines(lost.join(', '))}`]),
    ...(damaged.length === 0 ? [] : [`commands whose record is damaged: ${damaged.join(', ')}`]),
    renderControlPlane(view.controlPlane, now),
    renderProxy(view.proxy),
  ];
}

function renderControlPlane({ origin, lastToldAt, error }: CommandsView['controlPlane'], now: Date): string {
  if (origin === null) return 'control plane of commands: none (commands.central_base_url)';
  const told =
    lastToldAt === null
      ? `never told${error === null ? '' : `: ${foldLines(error)}`}`
      : error === null
        ? `told ${ago(lastToldAt, now)}`
        : `last told ${ago(lastToldAt, now)}; since then: ${foldLines(error)}`;
  return `control plane of commands: ${origin}, ${told}`;
}

/** More are counted: `reeve proxy list` has them all. */
const mostShown = 5;

function renderProxy(proxy: CommandsView['proxy']): string {
  const { instances, draining, activeTunnels, workers, error } = proxy;
  const shown = instances.slice(0, mostShown).map(({ instance, port }) => `${instance}:${port}`);
  const more = instances.length > mostShown ? [`${instances.length - mostShown} more`] : [];
  const names = shown.length === 0 ? '' : ` (${[...shown, ...more].join(', ')})`;
  const count = `${instances.length} instance${instances.length === 1 ? '' : 's'}${names}`;
  const old = workers > 1 ? `, in ${workers} workers` : '';
  const tunnels =
    activeTunnels === null ? (error ?? 'HAProxy does not run') : `active tunnels: ${activeTunnels}${old}`;
  return `proxy: ${count}; ${foldLines(tunnels)}${draining ? '; new ones are refused (drain)' : ''}`;
}
