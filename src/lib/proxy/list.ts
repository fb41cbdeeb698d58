// What is registered, and what runs: for people and for control planes. Read-only.
import type { BaseContext } from '../context.ts';
import type { Outcome } from '../outcome.ts';
import { renderTable } from '../report/table.ts';
import { readSingle } from './compare.ts';
import { drainKey, parseInstance } from './parse.ts';
import { proxyPaths } from './paths.ts';
import { ignoreAbsence, readInstances } from './registry.ts';
import { countTunnels, type Tunnels } from './tunnels.ts';

type ListContext = Pick<BaseContext, 'paths' | 'signal'>;

export async function listInstances(ctx: ListContext): Promise<Outcome> {
  const instances = [...(await readInstances(ctx))];
  const tunnels = await countTunnels(ctx).catch(ignoreAbsence);
  // A start ends a drain.
  const isDraining = tunnels !== undefined && (await readDraining(ctx));
  const rows = instances.map(([name, port]) => [name, String(port)]);
  return {
    outcome: 'done',
    text: [
      ...(rows.length === 0 ? ['no instance is registered'] : renderTable(['INSTANCE', 'PORT'], rows)),
      tellTunnels(tunnels, isDraining),
    ],
    data: {
      instances: instances.map(([instance, port]) => ({ instance, port })),
      draining: isDraining,
      ...(tunnels === undefined
        ? { running: false }
        : { running: true, activeTunnels: tunnels.total, workers: tunnels.workers }),
    },
  };
}

export async function getInstance(ctx: ListContext, instance: string): Promise<Outcome> {
  const port = (await readInstances(ctx)).get(parseInstance(instance));
  return {
    outcome: port === undefined ? 'failed' : 'done',
    text: [port === undefined ? `${instance} is not registered` : String(port)],
    data: { instance, found: port !== undefined, ...(port === undefined ? {} : { port }) },
  };
}

/** Whether new tunnels are refused, as far as the files tell. */
export async function readDraining({ paths }: Pick<ListContext, 'paths'>): Promise<boolean> {
  return (await readSingle(proxyPaths(paths).flagsMap, drainKey)) === 'on';
}

function tellTunnels(tunnels: Tunnels | undefined, isDraining: boolean): string {
  if (tunnels === undefined) return 'HAProxy does not run';
  const old = tunnels.workers.filter(({ old: isOld }) => isOld).length;
  const where = old === 0 ? '' : `, in ${tunnels.workers.length} workers`;
  const draining = isDraining ? '; new ones are refused (drain)' : '';
  return `active tunnels: ${tunnels.total}${where}${draining}`;
}
