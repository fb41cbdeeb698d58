// What a container leaves while it runs and after it: its output as it comes, what it has used, the engine's words about it.
import type { Connection } from './connection.ts';
import { containerPath } from './containers.ts';
import { type Deadlines, idle, total } from './deadline.ts';
import { parseLayerBytes, parseUsage } from './parse-usage.ts';
import type { Engine, FollowOptions, LogPart } from './types.ts';

type LogCalls = Pick<Engine, 'followLogs' | 'fetchUsage' | 'fetchLayerBytes' | 'inspectContainerRaw'>;

const headerBytes = 8;
/** As long as timers can be: a container may be silent for days. */
const longestMs = 2 ** 31 - 1;

export function logCalls(connection: Connection, deadlines: Deadlines): LogCalls {
  const inspectWith = async (id: string, query: Readonly<Record<string, number>>): Promise<unknown> => {
    const call = {
      action: `inspect container "${id}"`,
      method: 'GET',
      path: `${containerPath(id)}/json`,
      query,
      deadline: total(deadlines.readMs),
      accept: [404],
    } as const;
    return await connection.read(call, (json, status) => (status === 404 ? undefined : json));
  };
  return {
    followLogs: (id, options) => followLogs(connection, id, options),
    inspectContainerRaw: (id) => inspectWith(id, {}),
    fetchUsage: async (id, signal) => {
      const call = {
        action: `read what container "${id}" uses`,
        method: 'GET',
        path: `${containerPath(id)}/stats`,
        query: { stream: 0, 'one-shot': 1 },
        deadline: total(deadlines.readMs),
        accept: [404],
        signal,
      } as const;
      return await connection.read(call, (json, status) => (status === 404 ? undefined : parseUsage(json)));
    },
    fetchLayerBytes: async (id) => {
      const sized = await inspectWith(id, { size: 1 });
      return sized === undefined ? undefined : parseLayerBytes(sized);
    },
  };
}

async function followLogs(
  connection: Connection,
  id: string,
  { signal, onPart }: FollowOptions,
): Promise<void> {
  const push = createPartReader(onPart);
  await connection.stream(
    {
      action: `follow the log of container "${id}"`,
      method: 'GET',
      path: `${containerPath(id)}/logs`,
      query: { stdout: 1, stderr: 1, follow: 1 },
      deadline: idle(longestMs),
      signal,
    },
    push,
  );
}

/** Takes frames of `[stream, 0, 0, 0, length (4 bytes, big-endian)]` apart, however they are cut. Keeps at most a header. */
export function createPartReader(
  onPart: (part: LogPart) => Promise<void> | void,
): (chunk: Uint8Array) => Promise<void> {
  const header = Buffer.alloc(headerBytes);
  let headerLength = 0;
  let remaining = 0;
  let stream: LogPart['stream'] = 'stdout';
  /** Gives how many bytes it has taken. */
  const readHeader = (bytes: Uint8Array): number => {
    const taken = Math.min(headerBytes - headerLength, bytes.length);
    header.set(bytes.subarray(0, taken), headerLength);
    headerLength += taken;
    if (headerLength < headerBytes) return taken;
    headerLength = 0;
    stream = header[0] === 2 ? 'stderr' : 'stdout';
    remaining = header.readUInt32BE(4);
    return taken;
  };
  return async (chunk) => {
    let at = 0;
    while (at < chunk.length) {
      if (remaining === 0) {
        at += readHeader(chunk.subarray(at));
        continue;
      }
      const bytes = chunk.subarray(at, at + remaining);
      remaining -= bytes.length;
      at += bytes.length;
      const busy = onPart({ stream, bytes });
      if (busy !== undefined) await busy;
    }
  };
}
