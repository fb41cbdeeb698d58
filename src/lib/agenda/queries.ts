// What the routes about instances are asked, out of their queries: an instance's port and path, and its log files. Pure. Throws an
// InputError that names the field.
import { InputError } from '../errors.ts';
import { isPort } from '../port.ts';
import { type InstanceRequest, type LogsRequest, limits, type ProbeRequest } from './instances.ts';

const methods: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

export function parseMetricsQuery(query: URLSearchParams): InstanceRequest {
  return parseInstanceQuery(query, '/metrics');
}

/** A time that is none is as if it were not there, and one that is too long is cut. */
export function parseProbeQuery(query: URLSearchParams): ProbeRequest {
  const method = (query.get('method') || 'GET').toUpperCase();
  if (!methods.includes(method)) throw new InputError(`method must be one of ${methods.join(', ')}`);
  const asked = readCount(query.get('timeout_ms'));
  const timeoutMs = Math.min(asked ?? limits.probeMs, limits.longestProbeMs);
  return { ...parseInstanceQuery(query, '/'), method, timeoutMs };
}

function parseInstanceQuery(query: URLSearchParams, defaultPath: string): InstanceRequest {
  const port = readCount(query.get('port'));
  if (!isPort(port)) throw new InputError('port must be a port, from 1 to 65535');
  const scheme = query.get('scheme') || 'http';
  if (scheme !== 'http' && scheme !== 'https') throw new InputError('scheme must be http or https');
  return { port, scheme, target: toTarget(query.get('path') || defaultPath) };
}

/** As it stands in a request line: what may not stand there is encoded, and what has no place in it is refused. */
function toTarget(path: string): string {
  if (!path.startsWith('/')) throw new InputError('path must start with /');
  if (/\p{Cc}/u.test(path)) throw new InputError('path must have no control characters');
  return path.replace(/#.*$/, '').replaceAll(/[^\x21-\x7e]+/gu, encodeURIComponent);
}

/** `tail` is as it would be without, where it is no number; the directory is the control plane's to know. */
export function parseLogsQuery(query: URLSearchParams): LogsRequest {
  const dir = query.get('dir') ?? '';
  if (dir === '') throw new InputError('dir is required');
  if (!dir.startsWith('/') || dir.includes('\0')) throw new InputError('dir must be an absolute path');
  const tail = Math.min(readCount(query.get('tail')) ?? limits.logLines, limits.mostLogLines);
  const service = query.get('service') ?? '';
  return { dir, tail, ...(service === '' ? {} : { service }) };
}

/** A whole number above zero. */
function readCount(text: string | null): number | undefined {
  const count = /^\d{1,15}$/.test(text ?? '') ? Number(text) : 0;
  return count > 0 ? count : undefined;
}

/** The body of `PUT /v1/proxy/:instance`: its port. */
export function parseProxyRequest(raw: unknown): number {
  const { port } = (raw ?? {}) as { port?: unknown };
  if (!isPort(port)) throw new InputError('port must be a whole number from 1 to 65535');
  return port;
}
