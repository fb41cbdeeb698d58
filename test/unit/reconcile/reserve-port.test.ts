import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { portKey, preferredPort } from '../../../src/lib/cluster/ports.ts';
import { portsDocument } from '../../../src/lib/reconcile/documents.ts';
import { openLedger } from '../../../src/lib/reconcile/ledger.ts';
import { releasePort, reservePort } from '../../../src/lib/reconcile/reserve-port.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { readDocument } from '../../../src/lib/state/document.ts';
import { makeTempDir } from '../../support/temp.ts';

const address = '127.0.0.1';

async function openPorts() {
  const path = join(makeTempDir(), 'ports.json');
  const how = { now: new Date('2026-06-04T03:00:00.000Z'), log: silentLog };
  const ports = await openLedger(path, portsDocument, { empty: { ports: {} }, ...how });
  return { session: { ports }, onDisk: () => readDocument(path, portsDocument, how) };
}

/** Two replicas that prefer one port. */
function findRivals() {
  const owners = new Map<number, { project: string; service: string; index: number }>();
  for (let index = 0; ; index += 1) {
    const owner = { project: 'blog', service: 'web', index };
    const other = owners.get(preferredPort(portKey(owner)));
    if (other !== undefined) return [other, owner] as const;
    owners.set(preferredPort(portKey(owner)), owner);
    if (index > 20_000) throw new Error('no two keys with one port');
  }
}

describe('a host port', () => {
  it('is never given to two replicas whose turns go on side by side (R57)', async () => {
    const { session, onDisk } = await openPorts();
    const rivals = findRivals();
    const given = await Promise.all(rivals.map((owner) => reservePort(session, owner, address)));
    expect(new Set(given).size).toBe(2);
    const expected = Object.fromEntries(rivals.map((owner, at) => [portKey(owner), given[at]]));
    expect(await onDisk()).toEqual({ kind: 'ok', value: { ports: expected } });
  });

  it('is the same one again, and free for others once it is released (R57, L37, L39)', async () => {
    const { session, onDisk } = await openPorts();
    const owner = { project: 'blog', service: 'web', index: 0 };
    const port = await reservePort(session, owner, address);
    expect(await reservePort(session, owner, address)).toBe(port);
    await releasePort(session, owner);
    expect(await onDisk()).toEqual({ kind: 'ok', value: { ports: {} } });
  });

  it('that another program listens on is passed over', async () => {
    const { session } = await openPorts();
    const owner = { project: 'taken', service: 'web', index: 1 };
    const free = await reservePort(session, owner, address);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(free, address, resolve));
    onTestFinished(() => void server.close());
    const next = await reservePort(session, owner, address);
    expect([next > free, session.ports.value.ports]).toEqual([true, { [portKey(owner)]: next }]);
  });
});
