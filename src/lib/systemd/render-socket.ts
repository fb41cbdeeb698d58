// The drop-in of a socket of ours: another address than the unit has by itself. Pure.
import { isIP } from 'node:net';
import { parseSocketAddress } from '../config/listen.ts';
import { InternalError } from '../errors.ts';
import type { Rendered } from './render-edge.ts';

/** As Go listens: without a host on all addresses, of either kind. `shipped`: what the unit says. */
export function renderSocket(unit: string, listen: string, shipped: string): Rendered {
  const parsed = parseSocketAddress(listen);
  if (parsed === undefined)
    throw new InternalError(`address ${JSON.stringify(listen)} of ${unit} was let in`);
  const { host, port } = parsed;
  const stream = host === '' ? `${port}` : `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  if (stream === shipped) return { unit, lines: [] };
  return {
    unit,
    lines: [
      '[Socket]',
      "# Empty first: else the unit's own address would stay in force beside this one.",
      'ListenStream=',
      `ListenStream=${stream}`,
    ],
  };
}
