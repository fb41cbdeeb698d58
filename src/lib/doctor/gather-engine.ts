// Asks the engine: what it is, what runs in it, and whose logs grow.
import { stat } from 'node:fs/promises';
import { ownershipOf } from '../cluster/names.ts';
import { readEngineVersion, readLogSetting } from '../docker/about.ts';
import { openConnection } from '../docker/connection.ts';
import { containerCalls } from '../docker/containers.ts';
import { defaultDeadlines } from '../docker/deadline.ts';
import type { ContainerSummary } from '../docker/types.ts';
import type { EngineFacts } from './judge-engine.ts';

/** Below the time that a check has. */
const deadlineMs = 4_000;
/** Each is one request; a machine with more tells enough by these. */
const mostInspected = 200;
const parallel = 8;

/** Throws what the engine's client throws. */
export async function gatherEngine(socket: string, nodeId: string): Promise<EngineFacts> {
  const connection = openConnection({ socket });
  try {
    const version = await readEngineVersion(connection, deadlineMs);
    const deadlines = { ...defaultDeadlines, readMs: deadlineMs };
    const containers = await containerCalls(connection, deadlines).listContainers({ labels: [] });
    const isOurs = ({ labels }: ContainerSummary): boolean => ownershipOf(labels, nodeId) === 'ours';
    const isStranger = ({ labels }: ContainerSummary): boolean => ownershipOf(labels, nodeId) === 'stranger';
    const ids = containers.filter((container) => !isOurs(container)).map(({ id }) => id);
    return {
      socket,
      version,
      apiVersion: connection.apiVersion,
      containers: containers.length,
      strangers: containers.filter(isStranger).map(({ name }) => name),
      unboundedLogs: await gatherLogs(connection, ids.slice(0, mostInspected)),
    };
  } finally {
    connection.close();
  }
}

type Log = EngineFacts['unboundedLogs'][number];

async function gatherLogs(
  connection: ReturnType<typeof openConnection>,
  ids: readonly string[],
): Promise<Log[]> {
  const logs: Log[] = [];
  for (let start = 0; start < ids.length; start += parallel) {
    const batch = ids.slice(start, start + parallel);
    const found = await Promise.all(batch.map((id) => gatherLog(connection, id)));
    logs.push(...found.filter((log) => log !== undefined));
  }
  return logs;
}

/** The size is known where the engine runs on this machine and we may look. */
async function gatherLog(
  connection: ReturnType<typeof openConnection>,
  id: string,
): Promise<Log | undefined> {
  const setting = await readLogSetting(connection, id, deadlineMs);
  if (setting === undefined || setting.driver !== 'json-file' || setting.maxSize !== undefined)
    return undefined;
  const sizeBytes = await stat(setting.path).then(
    ({ size }) => size,
    () => 0,
  );
  return { name: setting.name, sizeBytes };
}
