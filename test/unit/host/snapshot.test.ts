import { describe, expect, it } from 'vitest';
import { parseDiskIo, parseNetwork } from '../../../src/lib/host/parse.ts';
import type { HostReading } from '../../../src/lib/host/sample.ts';
import { judgeDisk, toHeartbeat, worstState } from '../../../src/lib/host/snapshot.ts';

const reading = (load1: number, availableBytes = 1000): HostReading => ({
  cpu: { cores: 4, busy: 1, total: 2 },
  memory: { totalBytes: 4000, availableBytes },
  load1,
  sampledAt: new Date(0),
});
const disks = [
  { path: '/proc', totalBytes: 0, freeBytes: 0 },
  { path: '/', totalBytes: 900, freeBytes: 100 },
  { path: '/var/lib/docker', totalBytes: 500, freeBytes: 200 },
];

describe('the snapshot of a heartbeat', () => {
  it('P66, P67, P68, P69, P71, P74: has each field under its name, of the path with the least room', () => {
    expect(toHeartbeat(reading(1.2345), disks, '0.1.0')).toEqual({
      cpu_free_millis: 2765,
      cpu_total_millis: 4000,
      mem_free_bytes: 1000,
      mem_total_bytes: 4000,
      disk_free_bytes: 100,
      disk_total_bytes: 900,
      version: '0.1.0',
    });
  });

  it('P71: is never negative, and never has more free than there is', () => {
    const body = toHeartbeat(reading(99, 9999), [{ path: '/', totalBytes: 5, freeBytes: 9 }], 'x');
    expect([body.cpu_free_millis, body.mem_free_bytes, body.disk_free_bytes]).toEqual([0, 4000, 5]);
    expect(toHeartbeat(reading(0), [], 'x')).toMatchObject({ disk_free_bytes: 0, disk_total_bytes: 0 });
  });

  it('P70: calls a node by its worst part', () => {
    expect(worstState([])).toBe('unknown');
    expect(worstState(['ok', 'ok'])).toBe('ok');
    expect(worstState(['ok', 'unknown'])).toBe('unknown');
    expect(worstState(['degraded', 'unknown'])).toBe('degraded');
    expect(worstState(['degraded', 'error', 'ok'])).toBe('error');
    expect([
      judgeDisk([]),
      judgeDisk(disks),
      judgeDisk([{ path: '/', totalBytes: 100, freeBytes: 4 }]),
    ]).toEqual(['unknown', 'ok', 'degraded']);
  });
});

describe("the kernel's counters", () => {
  it('leave out loopbacks and what a pattern names', () => {
    const line = (name: string, rx: number, tx: number): string =>
      `${name}: ${rx} 1 0 0 0 0 0 0 ${tx} 1 0 0 0 0 0 0`;
    const text = [
      'Inter-|   Receive',
      ' face |bytes',
      line('    lo', 1, 1),
      line('  eth0', 5, 7),
      line('veth1', 9, 9),
    ];
    expect(parseNetwork(text.join('\n'), ['veth*', 'br-?'])).toEqual({ eth0: { rxBytes: 5, txBytes: 7 } });
  });

  it('sum up whole disks alone', () => {
    const text =
      '   8  0 sda 10 0 4 0 20 0 6 0 0 0 0\n   8  1 sda1 10 0 4 0 20 0 6 0 0 0 0\n 259 0 nvme0n1 1 0 1 0 1 0 1 0 0 0 0\n';
    expect(parseDiskIo(text)).toEqual({ readBytes: 5 * 512, writtenBytes: 7 * 512 });
  });
});
