// Containers over the Engine API. Asking for what is so already is success; a container that is gone counts as stopped.
import { UnavailableError } from '../errors.ts';
import type { Connection } from './connection.ts';
import { type Deadlines, idle, total } from './deadline.ts';
import { ContainerMissingError, EngineError, ImageMissingError, NameTakenError } from './errors.ts';
import { createLogReader, takeLastLines } from './frames.ts';
import {
  parseContainerDetails,
  parseContainerList,
  parseCreated,
  parseImageIdentity,
  parseWait,
} from './parse.ts';
import { imagePath } from './reference.ts';
import { buildContainerBody, checkContainerSpec } from './spec.ts';
import type { ContainerDetails, ContainerSpec, Engine, ImageIdentity } from './types.ts';

type ContainerCalls = Pick<
  Engine,
  | 'listContainers'
  | 'inspectContainer'
  | 'createContainer'
  | 'startContainer'
  | 'stopContainer'
  | 'killContainer'
  | 'waitContainer'
  | 'removeContainer'
  | 'containerLogs'
>;

/** More than a person reads; whole logs have their own shipping. */
const maxLogChars = 1024 * 1024;
/** The engine counts records, and makes several of a line over 16 KiB: with these the last line is whole up to 1 MiB. */
const extraRecords = 64;

export function containerCalls(connection: Connection, deadlines: Deadlines): ContainerCalls {
  const inspectContainer = (id: string) => inspect(connection, deadlines, id);
  return {
    listContainers: ({ labels }) =>
      connection.read(
        {
          action: 'list containers',
          method: 'GET',
          path: '/containers/json',
          query: { all: 1, filters: JSON.stringify({ label: labels }) },
          deadline: total(deadlines.readMs),
        },
        parseContainerList,
      ),
    inspectContainer,
    createContainer: (spec) => create(connection, deadlines, spec),
    startContainer: async (id) => {
      await connection.ask({
        action: `start container "${id}"`,
        method: 'POST',
        path: `${containerPath(id)}/start`,
        deadline: total(deadlines.changeMs),
      });
    },
    stopContainer: async (id, graceSeconds) => {
      const grace = Math.max(0, Math.ceil(graceSeconds));
      await connection.ask({
        action: `stop container "${id}"`,
        method: 'POST',
        path: `${containerPath(id)}/stop`,
        query: { t: grace },
        deadline: total(grace * 1000 + deadlines.stopMarginMs),
        accept: [404],
      });
    },
    killContainer: async (id, signal) => {
      // 409: it is not running.
      await connection.ask({
        action: `send ${signal} to container "${id}"`,
        method: 'POST',
        path: `${containerPath(id)}/kill`,
        query: { signal },
        deadline: total(deadlines.changeMs),
        accept: [404, 409],
      });
    },
    waitContainer: (id) => wait(connection, deadlines, id),
    removeContainer: (id, options) => remove(connection, deadlines, id, options),
    containerLogs: (id, { tailLines }) => readLogs(connection, deadlines, id, tailLines),
  };
}

/** The path of one container; a name that is empty would make it the path of all. */
export function containerPath(id: string): string {
  return `/containers/${encodeURIComponent(id || 'unnamed')}`;
}

async function inspect(
  connection: Connection,
  deadlines: Deadlines,
  id: string,
): Promise<ContainerDetails | undefined> {
  const call = {
    action: `inspect container "${id}"`,
    method: 'GET',
    path: `${containerPath(id)}/json`,
    deadline: total(deadlines.readMs),
    accept: [404],
  } as const;
  return await connection.read(call, (json, status) =>
    status === 404 ? undefined : parseContainerDetails(json),
  );
}

async function create(
  connection: Connection,
  deadlines: Deadlines,
  spec: ContainerSpec,
): Promise<{ id: string }> {
  checkContainerSpec(spec);
  const call = {
    action: `create container "${spec.name}"`,
    method: 'POST',
    path: '/containers/create',
    query: { name: spec.name },
    body: buildContainerBody(spec),
    deadline: total(deadlines.changeMs),
    accept: [409],
    secrets: Object.values(spec.env),
  } as const;
  try {
    return await connection.read(call, (json, status) => {
      if (status === 409) throw new NameTakenError(spec.name);
      return parseCreated(json);
    });
  } catch (error) {
    throw await explainRefusal(connection, deadlines, spec, error);
  }
}

/** Statuses of `create` say too little: 404 may be the image or a network, and podman gives 500 for a name in use. */
async function explainRefusal(
  connection: Connection,
  deadlines: Deadlines,
  spec: ContainerSpec,
  error: unknown,
): Promise<unknown> {
  if (!(error instanceof EngineError)) return error;
  if (error.status === 404 && (await inspectImage(connection, deadlines, spec.image)) === undefined) {
    return new ImageMissingError(spec.image);
  }
  if (error.status === 500 && (await inspect(connection, deadlines, spec.name)) !== undefined) {
    return new NameTakenError(spec.name);
  }
  return error;
}

export async function inspectImage(
  connection: Connection,
  deadlines: Deadlines,
  reference: string,
): Promise<ImageIdentity | undefined> {
  const call = {
    action: `look for image "${reference}"`,
    method: 'GET',
    path: `/images/${imagePath(reference)}/json`,
    deadline: total(deadlines.readMs),
    accept: [404],
  } as const;
  return await connection.read(call, (json, status) =>
    status === 404 ? undefined : parseImageIdentity(json),
  );
}

async function wait(connection: Connection, deadlines: Deadlines, id: string): Promise<number> {
  const action = `wait for container "${id}"`;
  const call = {
    action,
    method: 'POST',
    path: `${containerPath(id)}/wait`,
    query: { condition: 'not-running' },
    deadline: total(deadlines.waitSliceMs),
    accept: [404],
    interruptible: true,
  } as const;
  for (;;) {
    try {
      const { exitCode, error } = await connection.read(call, (json, status) => {
        if (status === 404) throw new ContainerMissingError(action);
        return parseWait(json);
      });
      if (error !== '') throw new EngineError(`cannot ${action}: ${error}`, 200);
      return exitCode;
    } catch (error) {
      if (!(error instanceof UnavailableError) || error.code !== 'deadline') throw error;
    }
    // Still running, or the engine hangs: this question has its own deadline and tells them apart.
    if ((await inspect(connection, deadlines, id)) === undefined) throw new ContainerMissingError(action);
  }
}

async function remove(
  connection: Connection,
  deadlines: Deadlines,
  id: string,
  { force, anonymousVolumes = false }: { force: boolean; anonymousVolumes?: boolean },
): Promise<void> {
  const answer = await connection.ask({
    action: `remove container "${id}"`,
    method: 'DELETE',
    path: containerPath(id),
    query: { force: force ? 1 : 0, v: anonymousVolumes ? 1 : 0 },
    deadline: total(deadlines.changeMs),
    accept: [404, 409],
  });
  if (answer.status !== 409) return;
  // Either somebody else is removing it, or it runs and was not to be forced.
  const details = await inspect(connection, deadlines, id);
  if (details === undefined || details.state === 'removing') return;
  throw new EngineError(`cannot remove container "${id}": ${answer.message}`, answer.status);
}

async function readLogs(
  connection: Connection,
  deadlines: Deadlines,
  id: string,
  tailLines: number,
): Promise<string> {
  const reader = createLogReader(maxLogChars);
  await connection.stream(
    {
      action: `read the log of container "${id}"`,
      method: 'GET',
      path: `${containerPath(id)}/logs`,
      query: { stdout: 1, stderr: 1, tail: tailLines + extraRecords },
      deadline: idle(deadlines.readMs),
    },
    (chunk) => reader.push(chunk),
  );
  return takeLastLines(reader.text(), tailLines);
}
