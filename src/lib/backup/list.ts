// `backup list`: the dumps of each database, newest first, and the sets with which something is wrong. Read-only.
import { mapBounded } from '../bounded.ts';
import { serviceKey } from '../cluster/wire.ts';
import { type NodeConfig, requireRole } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { describeError } from '../errors.ts';
import type { Outcome } from '../outcome.ts';
import { foldLines, renderTable } from '../report/table.ts';
import { dayMs } from '../schedule/calendar.ts';
import { ago } from '../status/ago.ts';
import { formatBytes } from './bytes.ts';
import { type BackupSet, type Dump, type Inventory, readInventory } from './inventory.ts';
import { openBackupStore } from './place.ts';
import { type BackedUp, readBackedUp } from './services.ts';

type Listing = { key: string; url: string } & ({ inventory: Inventory } | { error: string });

/** `failed` (exit 1) where a service's store cannot be read; what is wrong with a backup is told, and not this command's. */
export async function listBackups(ctx: Context, only: string | undefined): Promise<Outcome> {
  const cluster = requireRole(ctx.config, 'app', 'backup list');
  const services = await readBackedUp(ctx, cluster, only);
  const listings = await mapBounded(services, 4, async (service) => await readListing(ctx, cluster, service));
  const now = ctx.clock.now();
  const failed = listings.filter((listing) => 'error' in listing).length;
  const text = listings.flatMap((listing) => renderListing(listing, now));
  return {
    outcome: failed === 0 ? 'done' : failed < listings.length ? 'partial' : 'failed',
    text: text.length === 0 ? ['no service here has backups'] : text,
    data: { services: listings.map((listing) => describeListing(listing, now)) },
  };
}

async function readListing(ctx: Context, cluster: NodeConfig, service: BackedUp): Promise<Listing> {
  const key = serviceKey(service);
  try {
    const { store, prefix } = await openBackupStore({ cluster, signal: ctx.signal }, service.backup);
    const url = `${store.url}/${prefix}`;
    return { key, url, inventory: await readInventory(store, prefix) };
  } catch (error) {
    return { key, url: service.backup.bucket, error: describeError(error) };
  }
}

function renderListing(listing: Listing, now: Date): string[] {
  const { key, url } = listing;
  if ('error' in listing) return [`${key} in ${url}: cannot be listed: ${foldLines(listing.error)}`];
  const { dumps, unrecognised, sets } = listing.inventory;
  const sizeBytes = sumOf(dumps);
  const head = `${key} in ${url}: ${dumps.length} dumps, ${formatBytes(sizeBytes)}`;
  const rows = groupByDatabase(dumps).flatMap(([database, own]) =>
    own.map((dump) => [
      JSON.stringify(database),
      dump.stamp,
      ago(dump.at.toISOString(), now),
      formatBytes(dump.sizeBytes),
      dump.level,
      foldLines(dump.fault ?? ''),
    ]),
  );
  return [
    head,
    ...(rows.length === 0 ? [] : renderTable(['DATABASE', 'FIRE', 'AGE', 'SIZE', 'EVIDENCE', 'FAULT'], rows)),
    ...sets.flatMap((set) => faultsOf(set, now).map((fault) => `set ${set.stamp}: ${foldLines(fault)}`)),
    ...(unrecognised.length === 0 ? [] : [`${unrecognised.length} keys are no backup's`]),
  ];
}

function describeListing(listing: Listing, now: Date): object {
  const [project = '', service = ''] = listing.key.split('/');
  const about = { project, service, url: listing.url };
  if ('error' in listing) return { ...about, error: listing.error };
  const { dumps, sets, unrecognised } = listing.inventory;
  return {
    ...about,
    error: null,
    sizeBytes: sumOf(dumps),
    databases: groupByDatabase(dumps).map(([name, own]) => ({
      name,
      sizeBytes: sumOf(own),
      dumps: own.map(({ key, at, sizeBytes, level, fault }) => ({
        ...{ key, firedAt: at.toISOString(), ageMs: now.getTime() - at.getTime(), sizeBytes, level },
        fault: fault ?? null,
      })),
    })),
    sets: sets.toReversed().map((set) => ({
      ...{ stamp: set.stamp, firedAt: set.at.toISOString(), isFinished: set.manifest !== undefined },
      faults: faultsOf(set, now),
    })),
    unrecognised: unrecognised.length,
  };
}

/** What is wrong with a set as a whole. One without a manifest may be under way for a day. */
function faultsOf({ manifest, fault, pruned, updatedAt }: BackupSet, now: Date): string[] {
  if (fault !== undefined) return [`its manifest cannot be understood: ${fault}`];
  if (manifest !== undefined)
    return manifest.failures.map(({ database, error }) =>
      database === null ? error : `database ${JSON.stringify(database)}: ${error}`,
    );
  if (pruned.length > 0) return [];
  const isUnderWay = now.getTime() - updatedAt.getTime() < dayMs;
  return [isUnderWay ? 'it is under way, or was not finished' : 'it was not finished: it has no manifest'];
}

/** In the order of the inventory; the dumps of each newest first. */
function groupByDatabase(dumps: readonly Dump[]): [string, Dump[]][] {
  const names = [...new Set(dumps.map(({ database }) => database))].sort();
  return names.map((name) => [name, dumps.filter(({ database }) => database === name).reverse()]);
}

function sumOf(dumps: readonly Dump[]): number {
  return dumps.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}
