// What a run begins with: the desired services, what is known of their backups, and what holds them.
import { parseDesired } from '../cluster/desired.ts';
import { desiredKey } from '../cluster/keys.ts';
import { type DesiredService, serviceKey } from '../cluster/wire.ts';
import type { NodeConfig } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { InputError } from '../errors.ts';
import { readHolds } from '../hold/holds.ts';
import { cronDocument, stateFiles } from '../reconcile/documents.ts';
import { readDocument, writeDocument } from '../state/document.ts';
import { openStore } from '../store/open.ts';
import type { BackupFacts } from './plan.ts';
import { rebuildBackups } from './rebuild.ts';
import { type BackupsDocument, backupsDocument, backupsPath, emptyBackups } from './state.ts';

export type BackupWorld = {
  facts: Omit<BackupFacts, 'anchors'>;
  document: BackupsDocument;
  /** All desired services, those that cannot be read among them; undefined where one does not even tell its name. */
  known: ReadonlySet<string> | undefined;
};

/** Undefined where there is no desired state: then nothing is done. Throws what store and state files throw. */
export async function gatherBackups(ctx: Context, cluster: NodeConfig): Promise<BackupWorld | undefined> {
  const desired = await readDesired(ctx, cluster);
  if (desired === undefined) return undefined;
  const now = ctx.clock.now();
  const { services } = desired;
  return {
    facts: {
      now,
      services,
      imported: await readImported(ctx, now),
      holds: await readHolds(ctx.paths, now, ctx.log),
    },
    document: await readBackups(ctx, cluster, services),
    known: desired.known,
  };
}

async function readDesired(
  ctx: Context,
  cluster: NodeConfig,
): Promise<{ services: readonly DesiredService[]; known: BackupWorld['known'] } | undefined> {
  const store = await openStore(cluster, { signal: ctx.signal });
  const stored = await store.get(desiredKey(cluster.clusterId, cluster.nodeId));
  if (stored === undefined) return undefined;
  const { document, services, rejected } = parseDesired(stored.text);
  if (document.nodeId !== cluster.nodeId) {
    throw new InputError(
      `cannot read "desired.json": it is for node ${document.nodeId}, and this is node ${cluster.nodeId}`,
    );
  }
  const unread = rejected.flatMap(({ key }) => (key === undefined ? [] : [key]));
  const isComplete = unread.length === rejected.length;
  return { services, known: isComplete ? new Set([...services.map(serviceKey), ...unread]) : undefined };
}

async function readImported({ paths, log }: Context, now: Date): Promise<Readonly<Record<string, number>>> {
  const read = await readDocument(stateFiles(paths).cron, cronDocument, { now, log, repair: false });
  return read.kind === 'ok' || read.kind === 'recovered' ? read.value.fires : {};
}

/** What was lost is told by the backups themselves. */
async function readBackups(
  ctx: Context,
  cluster: NodeConfig,
  services: readonly DesiredService[],
): Promise<BackupsDocument> {
  const how = { now: ctx.clock.now(), log: ctx.log };
  const read = await readDocument(backupsPath(ctx.paths), backupsDocument, how);
  if (read.kind === 'ok' || read.kind === 'recovered') return read.value;
  if (read.kind === 'missing') return emptyBackups;
  const rebuilt = await rebuildBackups(ctx, cluster, services);
  await writeDocument(backupsPath(ctx.paths), backupsDocument, rebuilt);
  return rebuilt;
}
