// The units of a configuration: shown, compared with what is there, put in place.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { BaseContext, Context } from '../context.ts';
import { ConfigError } from '../errors.ts';
import { isSystemdRunning } from '../exec/systemd.ts';
import type { Outcome } from '../outcome.ts';
import { type ApplyOptions, applyUnits } from './apply.ts';
import { dropInPath, gatherEnvironment, gatherUnits } from './gather.ts';
import { describeChange, planUnits, type UnitChange } from './plan.ts';
import { type DropIn, findEnabled, renderDropIns, type UnitsConfig } from './render.ts';
import { rootTarget, unitDirectory } from './units.ts';

/** `root`: the directory that stands for `/`, for images that are being built. */
export type UnitsOptions = { root: string };

export async function renderUnits(ctx: Context, { root }: UnitsOptions): Promise<Outcome> {
  const dropIns = render(await complete(ctx.config, root), ctx.paths.configFile, root);
  const files = dropIns.map(({ unit, text }) => ({ path: dropInPath('/', unit), text }));
  return {
    outcome: 'done',
    text:
      files.length === 0
        ? ['nothing: the units are right for this configuration as they are shipped']
        : files.flatMap(({ path, text }) => [`# ${path}`, ...text.trimEnd().split('\n'), '']).slice(0, -1),
    data: { files },
  };
}

/** Pending where something is missing, different, or left over. */
export async function compareUnits(ctx: Context, { root }: UnitsOptions): Promise<Outcome> {
  const changes = await planFor(ctx.config, ctx.paths.configFile, root);
  const pathOf = (unit: string): string => dropInPath(root, unit);
  return {
    outcome: changes.length === 0 ? 'nothing-to-do' : 'pending',
    text:
      changes.length === 0
        ? ['the units are as the configuration wants them']
        : [
            ...changes.flatMap((change) => describeChange(change, pathOf)),
            'next: `reeve units render --write`',
          ],
    data: { changes: toData(changes) },
  };
}

export async function writeUnits(ctx: Context, { root }: UnitsOptions): Promise<Outcome> {
  requireUsualDirectories(ctx);
  const changes = await planFor(ctx.config, ctx.paths.configFile, root);
  const { running } = await applyUnits(changes, applyOptions(ctx, ctx.config, root));
  const lines = changes.map((change) => tellChange(change, root));
  return {
    outcome: changes.length === 0 ? 'nothing-to-do' : 'done',
    text: lines.length === 0 ? ['the units are as the configuration wants them'] : lines,
    data: { changes: toData(changes), running },
  };
}

/** What `init` does for a machine on which the units are installed; undefined where they are not. */
export async function startUnits(base: BaseContext, config: UnitsConfig): Promise<string[] | undefined> {
  const isUsual = base.paths.configFile === '/etc/reeve/reeve.yaml' && hasUsualDirectories(base);
  if (!isUsual || !isSystemdRunning() || !existsSync(join(unitDirectory, rootTarget))) return undefined;
  const changes = await planFor(config, base.paths.configFile, '/');
  const { running } = await applyUnits(changes, applyOptions(base, config, '/'));
  const lines = changes.map((change) => tellChange(change, '/'));
  return running
    ? lines
    : [...lines, `${rootTarget} is stopped: \`systemctl start ${rootTarget}\` starts it all`];
}

function applyOptions({ signal }: BaseContext, { cluster }: UnitsConfig, root: string): ApplyOptions {
  return { root, signal, balancerDirectory: cluster?.haproxy.directory };
}

/** With what the units' own environment says: a person's says nothing about them. */
async function complete(
  { cluster, jobs, commands, actions }: UnitsConfig,
  root: string,
): Promise<UnitsConfig> {
  return {
    ...(cluster === undefined ? {} : { cluster }),
    ...(jobs === undefined ? {} : { jobs }),
    ...(commands === undefined ? {} : { commands }),
    ...(actions === undefined ? {} : { actions }),
    environment: await gatherEnvironment(root),
  };
}

async function planFor(about: UnitsConfig, configFile: string, root: string): Promise<UnitChange[]> {
  const config = await complete(about, root);
  const wanted = { dropIns: render(config, configFile, root), enabled: findEnabled(config) };
  return planUnits(wanted, await gatherUnits(root));
}

function render(config: UnitsConfig, configFile: string, root: string): DropIn[] {
  if (root === '/') return renderDropIns(config, configFile);
  const inside = (path: string): string => (path.startsWith(`${root}/`) ? path.slice(root.length) : path);
  const { cluster } = config;
  if (cluster === undefined) return renderDropIns(config, inside(configFile));
  // An image's configuration is read below its root, and so its secrets are looked for there, unless it names a place.
  const secrets = cluster.secrets.startsWith('file:')
    ? pathToFileURL(inside(fileURLToPath(cluster.secrets))).href
    : cluster.secrets;
  return renderDropIns({ ...config, cluster: { ...cluster, secrets } }, inside(configFile));
}

function tellChange(change: UnitChange, root: string): string {
  switch (change.kind) {
    case 'write':
      return `wrote ${dropInPath(root, change.unit)}`;
    case 'remove':
      return `removed ${dropInPath(root, change.unit)}`;
    case 'enable':
      return `switched on ${change.unit}`;
    case 'disable':
      return `switched off ${change.unit}`;
  }
}

function toData(changes: readonly UnitChange[]): readonly object[] {
  return changes.map(({ kind, unit }) => ({ change: kind, unit }));
}

/** The units name the usual ones, and their sandbox opens no others. */
function requireUsualDirectories(base: BaseContext): void {
  if (hasUsualDirectories(base)) return;
  throw new ConfigError(
    'cannot write units: they use /var/lib/reeve and /run/reeve, and REEVE_STATE or REEVE_RUN name others here',
  );
}

function hasUsualDirectories({ paths }: Pick<BaseContext, 'paths'>): boolean {
  return paths.stateDir === '/var/lib/reeve' && paths.runDir === '/run/reeve';
}
