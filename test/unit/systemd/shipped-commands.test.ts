import { describe, expect, it } from 'vitest';
import { jobLimitMs } from '../../../src/lib/agenda/wire.ts';
import { commandsSocket, exposedUnits } from '../../../src/lib/systemd/units.ts';
import { one, parseUnit, spanMs } from '../../support/unit-files.ts';

describe('the socket of the API for commands', () => {
  const socket = parseUnit(commandsSocket);
  const service = parseUnit('reeve-api-commands.service');

  it('has no limit that could stop it for good, nor has its service (O52)', () => {
    expect(one(socket, 'Socket.TriggerLimitIntervalSec')).toBe('0');
    expect(one(service, 'Unit.StartLimitIntervalSec')).toBe('0');
    expect(one(socket, 'Socket.Accept')).toBe('no');
    expect(one(socket, 'Socket.Backlog')).toBe('4096');
  });

  it('is there before its service, which is told to end and has the time for it', () => {
    expect(one(service, 'Service.ExecStart')).toBe('/usr/local/bin/reeve api commands');
    expect(one(service, 'Service.Type')).toBe('exec');
    expect(one(service, 'Unit.Requires')).toBe(commandsSocket);
    expect(one(service, 'Unit.After')?.split(' ')).toContain(commandsSocket);
    expect(one(service, 'Service.KillMode')).toBe('mixed');
    expect(spanMs(one(service, 'Service.TimeoutStopSec'))).toBeGreaterThan(5_000);
    expect(one(service, 'Service.SuccessExitStatus')).toBe('75 143');
    expect(one(service, 'Unit.OnFailure')).toBe('reeve-failed@%n.service');
  });

  it('listens on this machine alone, where agenda-node does by default (A10, A11)', () => {
    expect(socket.settings.get('Socket.ListenStream')).toEqual(['127.0.0.1:7100']);
  });
});

describe('the unit of a command', () => {
  const unit = parseUnit('reeve-command@.service');

  it('runs one command once, and is gone when it has ended', () => {
    expect(one(unit, 'Service.ExecStart')).toBe('/usr/local/bin/reeve command run --wait 20 -- %i');
    expect(unit.settings.has('Service.Restart')).toBe(false);
    expect(one(unit, 'Service.Type')).toBe('exec');
    expect(one(unit, 'Unit.CollectMode')).toBe('inactive-or-failed');
    expect(one(unit, 'Unit.StartLimitIntervalSec')).toBe('0');
    expect(one(unit, 'Unit.OnFailure')).toBe('reeve-failed@%n.service');
    expect(one(unit, 'Service.SuccessExitStatus')).toBe('75 143');
  });

  it('gives the command the time that the wire gives it, and ends all that it has started (A50)', () => {
    const endMs = spanMs(one(unit, 'Service.TimeoutStopSec'));
    expect(endMs).toBeGreaterThan(2 * 5_000 + 2_000);
    expect(spanMs(one(unit, 'Service.RuntimeMaxSec'))).toBeGreaterThan(jobLimitMs + endMs);
    expect(one(unit, 'Service.KillMode')).toBe('mixed');
  });

  it('goes on where the kernel kills the command for its memory, so that somebody tells it', () => {
    expect(one(unit, 'Service.OOMPolicy')).toBe('continue');
  });

  it('is confined by nothing, and says why', () => {
    expect(exposedUnits).toContain(unit.name);
    const confining =
      /^Service\.(Protect|Private|Restrict|System|Inaccessible|ReadOnly|ReadWrite|NoNew|Capability|Ambient|Lock|Memory(?!Accounting)|TasksMax)/;
    expect([...unit.settings.keys()].filter((key) => confining.test(key))).toEqual([]);
    expect(unit.text).toContain(
      '# No sandbox, no limit of memory or tasks, all capabilities, and new privileges:',
    );
    expect(one(unit, 'Service.UMask')).toBe('0022');
  });
});
