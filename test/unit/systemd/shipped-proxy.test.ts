import { describe, expect, it } from 'vitest';
import {
  commandsTarget,
  hiddenPaths,
  neededPrograms,
  proxyControl,
  proxyUnits,
} from '../../../src/lib/systemd/units.ts';
import { one, parseUnit, spanMs, type Unit } from '../../support/unit-files.ts';

const proxy = (kind: string): Unit => parseUnit(`reeve-proxy.${kind}`);
const all = (unit: Unit, key: string): readonly string[] => unit.settings.get(key) ?? [];

describe('the proxy', () => {
  it('is held by a socket without a limit that could stop it for good, where agenda-node has it (A12)', () => {
    expect(one(proxy('socket'), 'Socket.ListenStream')).toBe('0.0.0.0:7200');
    expect(one(proxy('socket'), 'Socket.Backlog')).toBe('4096');
    expect(one(proxy('socket'), 'Socket.TriggerLimitIntervalSec')).toBe('0');
    expect(one(proxy('service'), 'Unit.Requires')).toBe('reeve-proxy.socket');
    expect(one(proxy('service'), 'Unit.After')).toBe('network.target reeve-proxy.socket');
    expect(one(proxy('service'), 'Unit.StartLimitIntervalSec')).toBe('0');
    expect(one(proxy('service'), 'Service.Restart')).toBe('always');
    expect(one(proxy('service'), 'Service.Environment')).toBe('REEVE_PROXY_BIND=fd@3');
    expect(one(proxy('service'), 'Service.ExecStart')).toBe(
      '/usr/sbin/haproxy -Ws -S /run/reeve-proxy/master.sock,mode,660 -f /opt/reeve/current/systemd/reeve-proxy.cfg',
    );
  });

  it('goes on serving when reeve is stopped: no unit of it is part of a target', () => {
    for (const kind of ['socket', 'service']) {
      expect(proxy(kind).settings.has('Unit.PartOf')).toBe(false);
      expect(one(proxy(kind), 'Install.WantedBy')).toBe(commandsTarget);
    }
  });

  it('does not start where there is no HAProxy, which is no failure', () => {
    for (const name of proxyUnits) {
      expect(one(parseUnit(name), 'Unit.ConditionFileIsExecutable')).toBe(
        neededPrograms['reeve-proxy.service'],
      );
    }
  });

  it('drains before it stops, and has the time for it (A25, A26)', () => {
    const service = proxy('service');
    const [drain = '', requests = ''] = all(service, 'Service.ExecStop');
    expect(drain).toBe('-!/usr/local/bin/reeve proxy drain');
    expect(requests).toContain('kill -USR1');
    // Of the seed, with the ends that are forced.
    expect(spanMs(one(service, 'Service.TimeoutStopSec'))).toBeGreaterThan(30_000 + 20_000);
    expect(one(service, 'Service.KillMode')).toBe('mixed');
    expect(one(service, 'Service.SuccessExitStatus')).toBe('143');
  });

  it('has its maps before it starts, and is compared with them once it has (A74)', () => {
    const service = proxy('service');
    expect(all(service, 'Service.ExecStartPre').at(-1)).toBe(
      '-!/usr/local/bin/reeve proxy sync --write-only --wait 2',
    );
    expect(one(service, 'Service.ExecStartPost')).toBe('-!/usr/local/bin/reeve proxy sync');
    expect(one(service, 'Service.ExecStopPost')).toMatch(/rm -f \S*master.sock \S*runtime.sock$/);
    // It would go with each stop, and others with it.
    expect(service.settings.has('Service.RuntimeDirectory')).toBe(false);
  });

  it('is reloaded only with a file that it could use', () => {
    const [check = '', order = ''] = all(proxy('service'), 'Service.ExecReload');
    expect(check).toMatch(
      /REEVE_PROXY_BIND=127\.0\.0\.1:1 \/usr\/sbin\/haproxy -c -q -f \S+reeve-proxy\.cfg$/,
    );
    expect(order).toBe('/bin/kill -USR2 $MAINPID');
  });

  it('has no right of root, and not the secrets of this machine', () => {
    const service = proxy('service');
    expect(one(service, 'Service.User')).toBe('haproxy');
    expect(one(service, 'Service.CapabilityBoundingSet')).toBe('');
    expect(one(service, 'Service.NoNewPrivileges')).toBe('yes');
    expect(one(service, 'Service.ProtectSystem')).toBe('strict');
    const hidden = [...hiddenPaths(proxyControl), '/var/lib/reeve'].map((path) => `-${path}`);
    expect(one(service, 'Service.InaccessiblePaths')).toBe(hidden.join(' '));
  });
});
