// The client for a container engine: Docker, or podman's compatible socket. One request a method where one is enough;
// values travel as JSON and nowhere else.
import type { Log } from '../report/log.ts';
import { openConnection } from './connection.ts';
import { containerCalls } from './containers.ts';
import { type Deadlines, defaultDeadlines } from './deadline.ts';
import { imageCalls } from './images.ts';
import type { LoginOptions } from './logins.ts';
import { logCalls } from './logs.ts';
import { networkCalls } from './networks.ts';
import type { Engine } from './types.ts';

export type EngineOptions = {
  /** Path of the unix socket. */
  socket: string;
  log?: Log;
  /** Ends pulls and waits, which change nothing on the way; other calls settle within their deadlines. */
  signal?: AbortSignal;
  /** Without it pulls are anonymous. */
  logins?: Omit<LoginOptions, 'signal'>;
  deadlines?: Partial<Deadlines>;
};

/** Sends nothing yet: the first call connects, and learns the version on the way. */
export function openEngine(options: EngineOptions): Engine {
  const connection = openConnection(options);
  const { logins } = options;
  const deadlines = { ...defaultDeadlines, ...options.deadlines };
  return {
    get apiVersion() {
      return connection.apiVersion;
    },
    get requestCount() {
      return connection.requestCount;
    },
    ...containerCalls(connection, deadlines),
    ...logCalls(connection, deadlines),
    ...networkCalls(connection, deadlines),
    ...imageCalls(connection, deadlines, logins && { ...logins, signal: options.signal }),
    close: () => connection.close(),
  };
}
