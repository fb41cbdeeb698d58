import { describe, expect, it } from 'vitest';
import { exposedUnits, jobsSocket } from '../../../src/lib/systemd/units.ts';
import { one, parseUnit, spanMs } from '../../support/unit-files.ts';

describe('the socket of the API for jobs', () => {
  const socket = parseUnit(jobsSocket);
  const service = parseUnit('reeve-api-jobs.service');

  it('has no limit that could stop it for good, nor has its service (O52)', () => {
    expect(one(socket, 'Socket.TriggerLimitIntervalSec')).toBe('0');
    expect(one(service, 'Unit.StartLimitIntervalSec')).toBe('0');
    expect(one(socket, 'Socket.Accept')).toBe('no');
    expect(one(socket, 'Socket.Backlog')).toBe('4096');
  });

  it('is there before its service, which is told to end and has the time for it', () => {
    expect(one(service, 'Service.Type')).toBe('exec');
    expect(one(service, 'Unit.Requires')).toBe(jobsSocket);
    expect(one(service, 'Unit.After')?.split(' ')).toContain(jobsSocket);
    expect(one(service, 'Service.KillMode')).toBe('mixed');
    expect(spanMs(one(service, 'Service.TimeoutStopSec'))).toBeGreaterThan(5_000);
    expect(one(service, 'Service.SuccessExitStatus')).toBe('75 143');
    expect(one(service, 'Unit.OnFailure')).toBe('reeve-failed@%n.service');
  });

  it('listens where ployd-node does by default (P22)', () => {
    expect(one(socket, 'Socket.ListenStream')).toBe('8444');
  });
});

describe('the unit of a job', () => {
  const unit = parseUnit('reeve-job@.service');

  it('goes on after whatever killed it, without a limit, and is gone when it has ended', () => {
    expect(one(unit, 'Service.ExecStart')).toBe('/usr/local/bin/reeve job run -- %i');
    expect(one(unit, 'Service.Restart')).toBe('on-failure');
    // A cancellation is noticed within four seconds, also of a job whose process was killed (P58, P60).
    expect(spanMs(one(unit, 'Service.RestartSec'))).toBe(2_000);
    expect(one(unit, 'Service.RestartPreventExitStatus')?.split(' ')).not.toContain('69');
    expect(one(unit, 'Service.SuccessExitStatus')).toBe('75 143');
    expect(one(unit, 'Unit.StartLimitIntervalSec')).toBe('0');
    expect(one(unit, 'Unit.CollectMode')).toBe('inactive-or-failed');
    expect(one(unit, 'Service.KillMode')).toBe('mixed');
  });

  it('is the only confined one that is exposed, and says why', () => {
    expect(exposedUnits).toEqual([unit.name, 'reeve-command@.service', 'reeve-deploy-action.service']);
    expect(one(unit, 'Service.CapabilityBoundingSet')).toBe('CAP_DAC_OVERRIDE CAP_CHOWN CAP_FOWNER');
    for (const name of ['CAP_DAC_OVERRIDE', 'CAP_CHOWN', 'CAP_FOWNER']) {
      expect(unit.text.split('\n').some((line) => line.startsWith('#') && line.includes(name))).toBe(true);
    }
  });
});
