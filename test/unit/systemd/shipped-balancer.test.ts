import { describe, expect, it } from 'vitest';
import { renderBalancerFile } from '../../../src/lib/edge/balancer-file.ts';
import { balancerUnits, hiddenPaths, neededPrograms } from '../../../src/lib/systemd/units.ts';
import { one, parseUnit, type Unit } from '../../support/unit-files.ts';

const balancer = (kind: string): Unit => parseUnit(`reeve-balancer.${kind}`);

describe('the balancer', () => {
  it('is held by a socket without a limit that could stop it for good, on the loopback', () => {
    expect(one(balancer('socket'), 'Socket.ListenStream')).toBe('127.0.0.1:7300');
    expect(one(balancer('socket'), 'Socket.Backlog')).toBe('4096');
    expect(one(balancer('socket'), 'Socket.TriggerLimitIntervalSec')).toBe('0');
    expect(one(balancer('service'), 'Unit.Requires')).toBe('reeve-balancer.socket');
    expect(one(balancer('service'), 'Unit.StartLimitIntervalSec')).toBe('0');
    expect(one(balancer('service'), 'Service.Restart')).toBe('always');
  });

  it('goes on serving when reeve is stopped: no unit of it is part of a target', () => {
    for (const kind of ['socket', 'service']) expect(balancer(kind).settings.has('Unit.PartOf')).toBe(false);
  });

  it('starts before any edge has looked, from the file that has no routes', async () => {
    const { text } = renderBalancerFile([]);
    await expect(text).toMatchFileSnapshot('../../../systemd/reeve-balancer.cfg');
  });

  it('does not start where there is no HAProxy, which is no failure', () => {
    for (const name of balancerUnits) {
      expect(one(parseUnit(name), 'Unit.ConditionFileIsExecutable')).toBe(
        neededPrograms['reeve-balancer.service'],
      );
    }
  });

  it('has no right of root, and not the secrets of this machine', () => {
    const service = balancer('service');
    expect(one(service, 'Service.User')).toBe('haproxy');
    expect(one(service, 'Service.CapabilityBoundingSet')).toBe('');
    expect(one(service, 'Service.NoNewPrivileges')).toBe('yes');
    expect(one(service, 'Service.ProtectSystem')).toBe('strict');
    const hidden = one(service, 'Service.InaccessiblePaths')?.split(' ') ?? [];
    const most = hiddenPaths({ unit: service.name, engine: false, places: {} }).filter(
      (path) => !path.startsWith('/etc/reeve/'),
    );
    expect(hidden).toEqual([...most, '/etc/reeve', '/var/lib/reeve'].map((path) => `-${path}`));
  });
});
