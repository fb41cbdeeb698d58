// What a doctor asks an engine and a tick never does: which engine it is, and how a container's log is bounded.
import { isRecord } from '../state/shape.ts';
import type { Connection } from './connection.ts';
import { total } from './deadline.ts';
import { UnexpectedAnswer } from './errors.ts';

/** `maxSize` is undefined where nothing bounds it. */
export type LogSetting = { name: string; driver: string; maxSize: string | undefined; path: string };

/** The product's own version; empty where it has none. */
export async function readEngineVersion(connection: Connection, deadlineMs: number): Promise<string> {
  return await connection.read(
    { action: 'ask which engine it is', method: 'GET', path: '/info', deadline: total(deadlineMs) },
    parseVersion,
  );
}

/** The directory that the engine keeps its volumes below; undefined where it does not tell. */
export async function readDataRoot(connection: Connection, deadlineMs: number): Promise<string | undefined> {
  return await connection.read(
    { action: 'ask where it keeps its data', method: 'GET', path: '/info', deadline: total(deadlineMs) },
    (json) => (isRecord(json) ? textOf(json['DockerRootDir']) : '') || undefined,
  );
}

/** Undefined where the container is gone. */
export async function readLogSetting(
  connection: Connection,
  id: string,
  deadlineMs: number,
): Promise<LogSetting | undefined> {
  const path = `/containers/${encodeURIComponent(id)}/json`;
  return await connection.read(
    { action: `look at container "${id}"`, method: 'GET', path, deadline: total(deadlineMs), accept: [404] },
    (json, status) => (status === 404 ? undefined : parseLogSetting(json)),
  );
}

function parseVersion(raw: unknown): string {
  if (!isRecord(raw)) throw new UnexpectedAnswer('no record of itself');
  return textOf(raw['ServerVersion']);
}

function parseLogSetting(raw: unknown): LogSetting {
  const details = isRecord(raw) ? raw : {};
  const host = isRecord(details['HostConfig']) ? details['HostConfig'] : {};
  const log = isRecord(host['LogConfig']) ? host['LogConfig'] : {};
  const options = isRecord(log['Config']) ? log['Config'] : {};
  const maxSize = options['max-size'];
  return {
    name: textOf(details['Name']).replace(/^\//, ''),
    driver: textOf(log['Type']),
    maxSize: typeof maxSize === 'string' ? maxSize : undefined,
    path: textOf(details['LogPath']),
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
