// Where a server listens: on the socket that systemd hands over, or on an address that a person names.
import type { Server } from 'node:net';
import { takeListenFds } from '../config/environment.ts';
import { parseListenAddress } from '../config/listen.ts';
import { ConfigError, systemErrorCode, UnavailableError, UsageError } from '../errors.ts';

/** `handed`: systemd holds the socket as well, so that nothing is lost when we end. */
export type ListenTarget = { handed: true; fd: number } | { handed: false; host?: string; port: number };

const firstHandedFd = 3;
/** Also in the unit: the kernel keeps what was asked for last, by whomever. */
const backlog = 4096;

/** Throws UsageError for an address that is none, or where there is neither. */
export function findListenTarget(address: string | undefined): ListenTarget {
  const count = takeListenFds();
  if (address !== undefined) {
    const parsed = parseListenAddress(address);
    if (parsed === undefined) {
      const isOfPort =
        /:\d+$/.test(address) && parseListenAddress(address.replace(/\d+$/, '0')) !== undefined;
      const rule = isOfPort ? 'its port must be 0 to 65535' : 'it must be HOST:PORT or :PORT';
      throw new UsageError(`cannot use --listen ${JSON.stringify(address)}: ${rule}`);
    }
    return { handed: false, port: parsed.port, ...(parsed.host === '' ? {} : { host: parsed.host }) };
  }
  if (count === 1) return { handed: true, fd: firstHandedFd };
  throw new UsageError(
    count === 0
      ? 'cannot listen: systemd has handed over no socket; --listen HOST:PORT names an address instead'
      : `cannot listen: systemd has handed over ${count} sockets, and this is a server of one`,
  );
}

/** Resolves once connections are taken, with the address. Throws UnavailableError where it is taken by another. */
export async function listenOn(server: Server, target: ListenTarget): Promise<string> {
  return await new Promise((resolve, reject) => {
    server.once('error', (error) => reject(toListenError(error, target)));
    const onListening = (): void => resolve(describeAddress(server));
    // The backlog as an argument: beside `fd` in the options it is ignored.
    if (target.handed) server.listen({ fd: target.fd }, backlog, onListening);
    else server.listen({ ...target, backlog }, onListening);
  });
}

function describeAddress(server: Server): string {
  const address = server.address();
  if (address === null || typeof address === 'string') return address ?? 'its socket';
  return `${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`;
}

function toListenError(error: Error, target: ListenTarget): Error {
  const place = target.handed ? `descriptor ${target.fd}` : `${target.host ?? ''}:${target.port}`;
  const code = systemErrorCode(error);
  if (code === 'EADDRINUSE') {
    return new UnavailableError(`cannot listen on ${place}: another program does`, { cause: error, code });
  }
  const why = listenErrors[code ?? ''] ?? code ?? error.message;
  return new ConfigError(`cannot listen on ${place}: ${why}`, { cause: error });
}

const listenErrors: Readonly<Record<string, string>> = {
  ENOTFOUND: 'its name is not known',
  EAI_AGAIN: 'its name cannot be looked up now',
  EADDRNOTAVAIL: 'this machine has no such address',
  EACCES: 'permission denied',
  EAFNOSUPPORT: 'this machine has no addresses of its kind',
};
