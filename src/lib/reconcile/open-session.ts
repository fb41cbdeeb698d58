// Opens what one activation needs: engine, store, state files. launch-pad's state file is taken over the first time.
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { NodeConfig } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { openEngine } from '../docker/client.ts';
import { ConfigError, describeError, systemErrorCode } from '../errors.ts';
import { findAdvertiseIp } from '../host/addresses.ts';
import type { SecretSource } from '../secrets/secrets.ts';
import { imagesDocument, imagesPath } from '../state/images-used.ts';
import { isRecord } from '../state/shape.ts';
import { openStore } from '../store/open.ts';
import { createBackground } from './background.ts';
import {
  type CronDocument,
  cronDocument,
  endsDocument,
  ownershipDocument,
  type PortsDocument,
  portsDocument,
  rolloutsDocument,
  shardsDocument,
  stateFiles,
} from './documents.ts';
import { openLedger } from './ledger.ts';
import type { Session } from './session.ts';

export type SessionOptions = {
  /** Nothing is written: `plan` and `--dry-run`. */
  readOnly: boolean;
};

export async function openSession(
  ctx: Context,
  cluster: NodeConfig,
  { readOnly }: SessionOptions,
): Promise<Session> {
  const files = stateFiles(ctx.paths);
  const how = { now: ctx.clock.now(), log: ctx.log, readOnly };
  const ports = await openLedger(files.ports, portsDocument, { empty: { ports: {} }, ...how });
  if (ports.found === 'missing' && !readOnly)
    await importLaunchPad(ctx, cluster.importState, { ports, cronFile: files.cron, how });
  const rollouts = await openLedger(files.rollouts, rolloutsDocument, { empty: { services: {} }, ...how });
  const shards = await openLedger(files.shards, shardsDocument, { empty: { edges: {} }, ...how });
  const images = await openLedger(imagesPath(ctx.paths), imagesDocument, {
    empty: { references: {} },
    ...how,
  });
  const cron = await openLedger(files.cron, cronDocument, { empty: { fires: {} }, ...how });
  const empty = { adoptedAt: '', containers: [] };
  const ownership = await openLedger(files.ownership, ownershipDocument, { empty, ...how });
  // The one adoption has been, and whom it took is no longer known: nobody is taken a second time.
  if (ownership.found === 'lost') await ownership.update((value) => ({ ...value, adoptedAt: 'lost' }));
  return {
    ctx,
    cluster,
    nodeId: cluster.nodeId,
    engine: openEngine({
      socket: cluster.docker.socket,
      log: ctx.log,
      signal: ctx.signal,
      logins: {
        directory: join(dirname(ctx.paths.configFile), 'docker'),
        tokenFile: join(ctx.paths.runDir, 'ecr.json'),
      },
    }),
    // Without the signal: a run that is told to stop still publishes where it stands.
    store: await openStore(cluster),
    secrets: openSecretsOnce(ctx, cluster),
    privateIp: await findAdvertiseIp(cluster, { log: ctx.log }),
    ...{ rollouts, ports, shards, cron, images, ownership },
    desired: { kind: 'none', reason: 'not read yet' },
    probes: new Map(),
    stopsAsked: new Set(),
    rechecked: new Set(),
    openEnds: once(() => openLedger(files.ends, endsDocument, { empty: { ends: {} }, ...how })),
    busy: new Set(),
    faults: new Map(),
    background: createBackground(),
    actions: [],
    events: [],
  };
}

function once<T>(open: () => Promise<T>): () => Promise<T> {
  let opened: Promise<T> | undefined;
  return () => {
    opened ??= open();
    return opened;
  };
}

function openSecretsOnce({ overrides, signal }: Context, cluster: NodeConfig): Session['secrets'] {
  const { clusterId, region } = cluster;
  const endpoint = overrides.AWS_ENDPOINT_URL_SSM ?? cluster.endpoint;
  let opened: Promise<SecretSource> | undefined;
  return {
    open: () => {
      opened ??= import('../secrets/secrets.ts').then(({ openSecrets }) =>
        openSecrets(cluster.secrets, { clusterId, region, endpoint, signal }),
      );
      return opened;
    },
    forget: () => {
      opened = undefined;
    },
  };
}

type Import = {
  ports: { update(change: (value: PortsDocument) => PortsDocument): Promise<void> };
  cronFile: string;
  how: Omit<Parameters<typeof openLedger<CronDocument>>[2], 'empty'>;
};

/** Ports and last fires of launch-pad's agent, so that its containers keep theirs. Only where we have none yet. */
async function importLaunchPad(ctx: Context, path: string, { ports, cronFile, how }: Import): Promise<void> {
  const found = await readLaunchPadState(path);
  if (found === undefined) return;
  const cron = await openLedger(cronFile, cronDocument, { empty: { fires: {} }, ...how });
  if (cron.found === 'missing') await cron.update(() => ({ fires: found.cronFires }));
  await ports.update(() => ({ ports: found.ports }));
  const counts = { ports: Object.keys(found.ports).length, fires: Object.keys(found.cronFires).length };
  ctx.log.info(`imported launch-pad's state from ${path}`, counts);
}

type LaunchPadState = { ports: Record<string, number>; cronFires: Record<string, number> };

async function readLaunchPadState(path: string): Promise<LaunchPadState | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw new ConfigError(`cannot import launch-pad's state from ${path}: ${describeError(error)}`, {
      cause: error,
    });
  }
  try {
    const raw: unknown = JSON.parse(text);
    if (!isRecord(raw)) throw new TypeError('it is no object');
    return { ports: numbersOf(raw['ports']), cronFires: numbersOf(raw['cronFires']) };
  } catch (error) {
    const cause = describeError(error);
    throw new ConfigError(
      `cannot import launch-pad's state from ${path}: ${cause}: repair it, or move it away to start without it`,
      { cause: error },
    );
  }
}

function numbersOf(raw: unknown): Record<string, number> {
  if (raw === undefined) return {};
  if (!isRecord(raw)) throw new TypeError('ports or cronFires is no map');
  const numbers = Object.entries(raw).filter(([, value]) => Number.isSafeInteger(value));
  return Object.fromEntries(numbers) as Record<string, number>;
}
