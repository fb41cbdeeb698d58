import { describe, expect, it } from 'vitest';
import { parseWindow } from '../../../src/lib/action/follow.ts';
import { windowMs } from '../../../src/lib/deploy-action/session.ts';
import {
  killGraceMs,
  longestTimeoutMs,
  patienceMs,
  pullIntervalMs,
} from '../../../src/lib/deploy-runner/times.ts';
import { listMs } from '../../../src/lib/rsync-pull/marks.ts';
import { pullMs } from '../../../src/lib/rsync-pull/mirror.ts';
import { pushMs } from '../../../src/lib/rsync-pull/push.ts';
import { one, parseUnit, spanMs } from '../../support/unit-files.ts';

/** Whatever the control side waits, with its end and the record of that. */
const longestDeployMs = longestTimeoutMs(24 * 60 * 60_000) + killGraceMs + patienceMs;

function waitOf(unit: ReturnType<typeof parseUnit>): number {
  return Number(/--wait (\d+)/.exec(one(unit, 'Service.ExecStart') ?? '')?.[1]) * 1000;
}

describe('the unit of the pull', () => {
  const unit = parseUnit('reeve-rsync-pull.service');

  it('has more time than the wait for its lock, a pull, a list and a push', () => {
    // What is not rsync's is hundreds of small files.
    const longestMs = pullMs + listMs + pushMs + 60_000;
    expect(waitOf(unit)).toBeGreaterThan(longestMs);
    expect(spanMs(one(unit, 'Service.TimeoutStartSec'))).toBeGreaterThan(waitOf(unit) + longestMs + 60_000);
  });

  it('comes more often than whoever begins a deploy reckons with (D40, D41)', () => {
    const everyMs = spanMs(one(parseUnit('reeve-rsync-pull.timer'), 'Timer.OnUnitInactiveSec'));
    expect(everyMs).toBeLessThan(pullIntervalMs);
  });

  it('sees no key but its own, in /etc/reeve', () => {
    expect(one(unit, 'Service.InaccessiblePaths')?.split(' ')).toEqual(
      expect.arrayContaining(['-/etc/ssh', '-/root', '-/run/docker.sock']),
    );
    expect(one(unit, 'Service.ProtectHome')).toBe('yes');
  });
});

describe('the unit of the deploys', () => {
  const unit = parseUnit('reeve-deploy-action.service');

  it('has more time than the wait for its lock, the time for deploys to begin, and the longest one (D38)', () => {
    expect(waitOf(unit)).toBeGreaterThanOrEqual(windowMs + longestDeployMs);
    expect(spanMs(one(unit, 'Service.TimeoutStartSec'))).toBeGreaterThan(
      waitOf(unit) + windowMs + longestDeployMs + 60_000,
    );
  });

  it('is confined by nothing, as the deploy script is a person’s, and says why (D14)', () => {
    const confining =
      /^Service\.(Protect|Private|Restrict|System|Inaccessible|ReadOnly|ReadWrite|NoNew|Capability|Ambient|Lock|Memory(?!Accounting)|TasksMax)/;
    expect([...unit.settings.keys()].filter((key) => confining.test(key))).toEqual([]);
    expect(unit.text).toContain(
      '# No sandbox, no limit of memory or tasks, all capabilities, and new privileges:',
    );
  });

  it('ends with all that it has started', () => {
    expect(one(unit, 'Service.KillMode')).toBe('mixed');
    expect(one(unit, 'Service.OOMPolicy')).toBe('continue');
  });
});

describe('the unit of the control side', () => {
  const unit = parseUnit('reeve-action.service');

  it('settles and dispatches, without a network (D5, D7)', () => {
    const start = one(unit, 'Service.ExecStart') ?? '';
    expect(start).toBe('/usr/local/bin/reeve action dispatch --settle --window 300 --wait 60');
    const lookingMs = parseWindow(/--window (\d+)/.exec(start)?.[1]);
    expect(spanMs(one(unit, 'Service.TimeoutStartSec'))).toBeGreaterThan(waitOf(unit) + lookingMs + 60_000);
    expect(one(unit, 'Service.PrivateNetwork')).toBe('yes');
  });

  it('has the capabilities that somebody else’s tree takes, and says why', () => {
    expect(one(unit, 'Service.CapabilityBoundingSet')).toBe('CAP_DAC_OVERRIDE CAP_CHOWN CAP_FOWNER');
  });
});
