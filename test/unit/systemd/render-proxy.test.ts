import { describe, expect, it } from 'vitest';
import type { CommandsConfig } from '../../../src/lib/config/config.ts';
import { findEnabled, renderDropIns } from '../../../src/lib/systemd/render.ts';
import { proxyUnits } from '../../../src/lib/systemd/units.ts';

/** As far as the proxy's units go by it. */
const commands = {
  listenAddr: '127.0.0.1:7100',
  proxyListenAddr: '0.0.0.0:7200',
  proxyBackendHost: '127.0.0.1',
  machineId: 7,
  token: 't',
  centralBaseUrl: '',
  heartbeatIntervalMs: 30_000,
  maxOutputBytes: 65_536,
  jobRetentionMs: 3_600_000,
  proxyDrainTimeoutMs: 30_000,
  user: 'root',
  liveOutput: false,
} as CommandsConfig;

const settingsOf = (overrides: Partial<CommandsConfig>, unit: string, configFile?: string): string[] => {
  const dropIns = renderDropIns({ commands: { ...commands, ...overrides } }, configFile);
  const text = dropIns.find((dropIn) => dropIn.unit === unit)?.text ?? '';
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
};

describe('the proxy of the section commands', () => {
  it('is switched on with it, and needs no drop-in as it is shipped', () => {
    expect(findEnabled({ commands })).toEqual(expect.arrayContaining([...proxyUnits]));
    expect(findEnabled({})).toEqual([]);
    for (const unit of proxyUnits) expect(settingsOf({}, unit)).toEqual([]);
  });

  it.each([
    ['10.0.0.5:7201', '10.0.0.5:7201'],
    [':7200', '7200'],
    ['localhost:7200', '127.0.0.1:7200'],
    ['[::1]:7200', '[::1]:7200'],
  ])('listens at %s as proxy_listen_addr says (A12)', (proxyListenAddr, stream) => {
    expect(settingsOf({ proxyListenAddr }, 'reeve-proxy.socket')).toEqual([
      '[Socket]',
      'ListenStream=',
      `ListenStream=${stream}`,
    ]);
  });

  it.each([
    [5_000, 35_000],
    [600_000, 630_000],
  ])('has %i ms for its tunnels, and %i ms to stop (A25)', (proxyDrainTimeoutMs, stopMs) => {
    expect(settingsOf({ proxyDrainTimeoutMs }, 'reeve-proxy.service')).toEqual([
      '[Service]',
      `TimeoutStopSec=${stopMs}ms`,
    ]);
  });

  it('finds a configuration that is elsewhere', () => {
    expect(settingsOf({ proxyDrainTimeoutMs: 1 }, 'reeve-proxy.service', '/srv/reeve.yaml')).toEqual([
      '[Service]',
      'Environment=REEVE_CONFIG=/srv/reeve.yaml',
      'TimeoutStopSec=30001ms',
    ]);
  });
});
