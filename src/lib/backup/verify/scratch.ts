// A server of its own for a dump to be restored into: of the image that the dump's server had, with no network and no port, and a
// volume without a name, which goes with it. It carries no label that anything but this file looks for.
import { setTimeout as sleep } from 'node:timers/promises';
import { labelNames } from '../../cluster/names.ts';
import type { DesiredService } from '../../cluster/wire.ts';
import type { Context } from '../../context.ts';
import type { ContainerDetails, Engine } from '../../docker/types.ts';
import { describeError, StepError } from '../../errors.ts';
import type { DatabaseEngine, DatabaseServer, DumpLimits } from '../engine.ts';
import { findDatabaseEngine } from '../engines.ts';
import type { Manifest } from '../manifest.ts';

export type ScratchPlace = {
  ctx: Context;
  engine: Engine;
  nodeId: string;
  /** Path of the engine's socket. */
  socket: string;
  limits: DumpLimits;
};

export type Scratch = {
  server: DatabaseServer;
  /** Where it is another server than the dump's was. */
  notes: readonly string[];
};

/** What a new server may take until it takes connections, in milliseconds. */
const startMs = 5 * 60_000;
const pollMs = 500;
const logLimits = { maxSizeBytes: 10 * 1024 * 1024, maxFiles: 1 };

/** Removes the containers and volumes that killed runs of this node have left. Assumes the lock `backup`. */
export async function sweepScratch({
  engine,
  nodeId,
}: Pick<ScratchPlace, 'engine' | 'nodeId'>): Promise<void> {
  for (const { id, name, labels } of await engine.listContainers({ labels: [labelNames.scratch] })) {
    if (name === scratchName(nodeId, labels[labelNames.scratch] ?? '')) await removeScratch(engine, id);
  }
}

/** Gives the server to the work, and removes it however the work ends. Throws StepError where it does not come up. */
export async function withScratch<T>(
  place: ScratchPlace,
  about: { service: DesiredService; manifest: Manifest; env: readonly string[] },
  work: (scratch: Scratch) => Promise<T>,
): Promise<T> {
  const { engine, ctx } = place;
  const { image, note } = await chooseImage(engine, about);
  const { id } = await createScratch(place, { ...about, image });
  try {
    await engine.startContainer(id);
    const container = await requireContainer(engine, id);
    const { runId, signal } = ctx;
    const { socket, limits } = place;
    const server = requireEngine(about.service).open({ socket, container, runId, signal, limits });
    await waitUntilReady(place, id, server);
    const { version } = await server.describe();
    const notes = [...(note === undefined ? [] : [note]), ...noteVersions(version, about.manifest)];
    return await work({ server, notes });
  } finally {
    await removeScratch(engine, id).catch((error: unknown) => {
      ctx.log.warning(`the scratch container is left to the next run: ${describeError(error)}`, { id });
    });
  }
}

function requireEngine({ database }: DesiredService): DatabaseEngine {
  if (database !== undefined) return findDatabaseEngine(database.engine);
  throw new StepError('cannot start a server: the service has no database any more');
}

async function removeScratch(engine: Engine, id: string): Promise<void> {
  await engine.removeContainer(id, { force: true, anonymousVolumes: true });
}

function scratchName(nodeId: string, runId: string): string {
  return `reeve-scratch-${nodeId}-${runId}`;
}

async function chooseImage(
  engine: Engine,
  { service, manifest }: { service: DesiredService; manifest: Manifest },
): Promise<{ image: string; note?: string }> {
  if ((await engine.inspectImage(manifest.imageId)) !== undefined) return { image: manifest.imageId };
  const gone = `the image of the dump's server, ${manifest.image} (${manifest.imageId.slice(0, 19)}), is no longer on this machine`;
  if ((await engine.inspectImage(service.image)) === undefined) {
    throw new StepError(`cannot start a server: ${gone}, and neither is ${service.image}`);
  }
  return { image: service.image, note: `${gone}: restored with ${service.image}` };
}

/** What goes into one major version need not go into another. */
function noteVersions(version: string, { serverVersion }: Manifest): string[] {
  const [major, dumped] = [version, serverVersion].map((one) => one.split('.', 1)[0]);
  return major === dumped ? [] : [`restored with version ${version}, and dumped from ${serverVersion}`];
}

async function createScratch(
  { engine, nodeId, ctx }: ScratchPlace,
  { service, image, env }: { service: DesiredService; image: string; env: readonly string[] },
): Promise<{ id: string }> {
  return await engine.createContainer({
    name: scratchName(nodeId, ctx.runId),
    image,
    env: requireEngine(service).setUpLike(env),
    labels: { [labelNames.scratch]: ctx.runId },
    cpus: service.cpu / 1024,
    memoryBytes: service.memory * 1024 * 1024,
    restart: 'no',
    network: { name: 'none', aliases: [] },
    ports: [],
    volumes: [],
    logs: logLimits,
  });
}

async function requireContainer(engine: Engine, id: string): Promise<ContainerDetails> {
  const container = await engine.inspectContainer(id);
  if (container !== undefined) return container;
  throw new StepError('the scratch container has gone');
}

async function waitUntilReady(
  { engine, ctx }: ScratchPlace,
  id: string,
  server: DatabaseServer,
): Promise<void> {
  const until = Date.now() + startMs;
  for (;;) {
    const { state, exitCode } = await requireContainer(engine, id);
    if (state !== 'running' && state !== 'created') {
      const said = (await engine.containerLogs(id, { tailLines: 3 })).trim();
      throw new StepError(`the scratch server is ${state} (${exitCode}): ${said}`);
    }
    if ((await server.findRefusal({ isNew: true })) === undefined) return;
    if (Date.now() >= until) throw new StepError('the scratch server takes no connections');
    await sleep(pollMs, undefined, { signal: ctx.signal });
  }
}
