import { describe, expect, it } from 'vitest';
import { defaultLimits } from '../../../src/lib/backup/engine.ts';
import { runMs } from '../../../src/lib/backup/run.ts';
import { verifyMs } from '../../../src/lib/backup/verify/run.ts';
import { activationMs } from '../../../src/lib/reconcile/loop.ts';
import {
  actionsTarget,
  actionsTimers,
  actionTimer,
  backupsDirectory,
  backupTimer,
  balancerUnits,
  claimTimer,
  commandsSocket,
  commandsTarget,
  exposedUnits,
  hiddenPaths,
  jobsSocket,
  jobsTarget,
  listenTimer,
  proxyUnits,
  roleTargets,
  rootTarget,
  services,
  switches,
  timers,
} from '../../../src/lib/systemd/units.ts';
import { ofKind, one, parseUnit, spanMs, type Unit, units } from '../../support/unit-files.ts';

/** All of the sandbox but what is each unit's own. */
function sandboxOf({ text }: Unit): string {
  return text.slice(Math.max(0, text.indexOf('# Root, and without')));
}

/** Where a unit's needs are others: the usual lines, and its own. */
const ownSandbox: Readonly<Record<string, readonly (readonly [RegExp, string])[]>> = {
  'reeve-action.service': [
    [/# Unix for .*\nRestrictAddressFamilies=.*/, '# Unix for the journal.\nRestrictAddressFamilies=AF_UNIX'],
    [/# Giving a file .*/, '# What it makes in the tree belongs to whoever the tree belongs to.'],
  ],
  'reeve-job@.service': [
    [
      /# Giving a file .*/,
      '# Files are unpacked with their owners, and libraries that replace files keep theirs.',
    ],
  ],
};

const byName = (unit: Unit): [string, Unit] => [unit.name, unit];
/** Those that run code of ours: all but HAProxy's. */
const ownServices = ofKind('service').filter(({ name }) => ![...balancerUnits, ...proxyUnits].includes(name));
const allServices = ownServices.map(byName);
const windows: readonly string[] = ['reeve-claim.service', 'reeve-listen.service'];
/** What serves or runs for as long as somebody else says: a job, a command, and the APIs. */
const isOneshot = ([name]: readonly [string, ...unknown[]]): boolean =>
  !/^reeve-(job@|command@|api-)/.test(name);
/** All but those that do what their user may. */
const isUnconfined = ({ unit, isConfined }: (typeof services)[number]): string[] =>
  isConfined === false ? [unit] : [];
const unconfined = services.flatMap(isUnconfined);
const confined = allServices.filter(([name]) => !unconfined.includes(name));
const oneshots = allServices.filter(isOneshot);
const started = oneshots.filter(([name]) => !name.includes('@'));
const intervalTimers = ofKind('timer').filter(({ settings }) => !settings.has('Timer.OnCalendar'));

describe('shipped units', () => {
  it('are those that the code knows', () => {
    expect(ownServices.map(({ name }) => name)).toEqual(services.map(({ unit }) => unit).sort());
    const known = [...timers.map(({ unit }) => unit), listenTimer, backupTimer, claimTimer, actionTimer];
    known.push(...actionsTimers);
    expect(intervalTimers.map(({ name }) => name)).toEqual(known.sort());
    const targets = [rootTarget, ...Object.values(roleTargets), jobsTarget, commandsTarget, actionsTarget];
    expect(ofKind('target').map(({ name }) => name)).toEqual(targets.sort());
    expect(ofKind('socket').map(({ name }) => name)).toEqual([
      commandsSocket,
      jobsSocket,
      'reeve-balancer.socket',
      'reeve-proxy.socket',
    ]);
  });

  it.each(switches)('$unit is switched on by a link from $wantedBy', ({ unit, wantedBy }) => {
    expect(one(parseUnit(unit), 'Install.WantedBy')).toBe(wantedBy);
  });

  it.each(units.map(byName))('%s tells what it is for, and where more stands', (_, unit) => {
    expect(unit.text).toMatch(/^# /);
    expect(one(unit, 'Unit.Description')).toMatch(/\w/);
    expect(one(unit, 'Unit.Documentation')).toBe('file:/opt/reeve/current/docs/units.md');
  });
});

describe('timers', () => {
  it.each(ofKind('timer').map(byName))('%s always has a next run (O39)', (_, { settings }) => {
    expect(settings.has('Timer.OnUnitActiveSec')).toBe(false);
    const isCalendar = settings.has('Timer.OnCalendar');
    expect(settings.has('Timer.OnUnitInactiveSec')).toBe(!isCalendar);
    expect(settings.has('Timer.OnActiveSec')).toBe(!isCalendar);
  });

  it.each(timers.map((timer) => [timer.unit, timer] as const))(
    '%s has the default interval',
    (name, timer) => {
      const unit = parseUnit(name);
      expect(spanMs(one(unit, 'Timer.OnUnitInactiveSec'))).toBe(timer.defaultMs);
      expect(spanMs(one(unit, 'Timer.OnActiveSec'))).toBe(timer.firstMs);
      expect(one(unit, 'Timer.AccuracySec')).toBe('1s');
      expect(spanMs(one(unit, 'Timer.RandomizedDelaySec'))).toBeLessThanOrEqual(timer.defaultMs / 20);
      expect(one(unit, 'Timer.FixedRandomDelay')).toBe('yes');
    },
  );

  it.each(
    ofKind('timer')
      .filter(({ settings }) => settings.has('Timer.OnCalendar'))
      .map(byName),
  )('%s is in UTC and is caught up after a time off (O41)', (_, unit) => {
    expect(one(unit, 'Timer.OnCalendar')).toMatch(/ UTC$/);
    expect(one(unit, 'Timer.Persistent')).toBe('yes');
  });

  it.each([
    [listenTimer, rootTarget],
    [claimTimer, jobsTarget],
  ])('%s begins the next window right after the last', (name, target) => {
    const unit = parseUnit(name);
    for (const key of ['OnActiveSec', 'OnUnitInactiveSec', 'AccuracySec']) {
      expect(spanMs(one(unit, `Timer.${key}`))).toBeLessThanOrEqual(1000);
    }
    expect(unit.settings.has('Timer.RandomizedDelaySec')).toBe(false);
    expect(one(unit, 'Unit.PartOf')).toBe(target);
  });

  it('belong to a target, which wants them by itself', () => {
    const wanted = ofKind('target').flatMap(
      ({ settings }) => settings.get('Unit.Wants')?.join(' ').split(' ') ?? [],
    );
    const switched = switches.map(({ unit }) => unit);
    const parts = [...ofKind('timer'), ...ofKind('path'), ...ofKind('socket')].filter(
      ({ name }) => !switched.includes(name),
    );
    expect(parts.map(({ name }) => name).sort()).toEqual([...new Set(wanted)].sort());
    for (const unit of parts) {
      expect(one(unit, 'Unit.PartOf')).toMatch(/^reeve(-app|-edge|-jobs|-commands|-actions)?\.target$/);
      expect(unit.text).not.toContain('[Install]');
    }
  });
});

describe('a node of any role or section', () => {
  it.each([...Object.values(roleTargets), jobsTarget, commandsTarget])(
    'tells that it is alive: %s wants the heartbeat, which outlives the other',
    (target) => {
      expect(one(parseUnit(target), 'Unit.Wants')?.split(' ')).toContain('reeve-heartbeat.timer');
      expect(one(parseUnit('reeve-heartbeat.timer'), 'Unit.PartOf')).toBe(rootTarget);
    },
  );
});

describe('path units', () => {
  it.each(ofKind('path').map(byName))('%s has no limit that could stop it for good (R60)', (name, unit) => {
    expect(one(unit, 'Unit.StartLimitIntervalSec')).toBe('0');
    expect(one(unit, 'Path.TriggerLimitIntervalSec')).toBe('0');
    const concern = /^reeve-(.+)\.path$/.exec(name)?.[1];
    expect(one(unit, 'Path.PathExists')).toBe(`/run/reeve/wake/${concern}`);
    const service = parseUnit(`reeve-${concern}.service`);
    expect(one(service, 'Unit.StartLimitIntervalSec')).toBe('0');
    // Before our code, outside the sandbox, and whatever the wake is: a file, or a directory that somebody made.
    expect(one(service, 'Service.ExecStartPre')).toMatch(`+/bin/sh -c 'rm -rf /run/reeve/wake/${concern};`);
    expect(one(service, 'Service.ExecStart')).toMatch(/ --wait \d+$/);
  });
});

describe('services', () => {
  it.each(oneshots)('%s ends in any case (O40)', (name, unit) => {
    // What lasts for a window is no oneshot: a boot ends when nothing is about to start any more.
    const isWindow = windows.includes(name);
    expect(one(unit, 'Service.Type')).toBe(isWindow ? 'exec' : 'oneshot');
    expect(spanMs(one(unit, 'Service.TimeoutStartSec'))).toBeGreaterThan(0);
    if (isWindow) expect(spanMs(one(unit, 'Service.RuntimeMaxSec'))).toBeGreaterThan(0);
    expect(spanMs(one(unit, 'Service.TimeoutStopSec'))).toBeGreaterThan(0);
    expect(one(unit, 'Service.KillMode')).toBe('mixed');
    expect(unit.settings.has('Service.Restart')).toBe(false);
    expect(unit.settings.has('Service.RemainAfterExit')).toBe(false);
    // A condition that does not hold leaves no trace from which the timer could count.
    expect([...unit.settings.keys()].filter((key) => /^Unit\.(Condition|Assert)/.test(key))).toEqual([]);
  });

  it('give the reconcile more time than its inner deadlines (O40)', () => {
    const unit = parseUnit('reeve-reconcile.service');
    const waitMs = Number(/--wait (\d+)$/.exec(one(unit, 'Service.ExecStart') ?? '')?.[1]) * 1000;
    const stepMs = 5 * 60_000;
    expect(spanMs(one(unit, 'Service.TimeoutStartSec'))).toBeGreaterThan(waitMs + activationMs + stepMs);
  });

  it('give a backup more time than the wait for its lock, the time for dumps to begin, and the longest one (O40)', () => {
    const unit = parseUnit('reeve-backup.service');
    const waitMs = Number(/--wait (\d+)$/.exec(one(unit, 'Service.ExecStart') ?? '')?.[1]) * 1000;
    const longestMs = waitMs + runMs + defaultLimits.dumpMs;
    expect(spanMs(one(unit, 'Service.TimeoutStartSec'))).toBeGreaterThan(longestMs + 60 * 60_000);
  });

  it('give a look at backups more time than the wait for its lock, the time for restores to begin, and the longest one (O40)', () => {
    const unit = parseUnit('reeve-backup-verify.service');
    const waitMs = Number(/--wait (\d+)$/.exec(one(unit, 'Service.ExecStart') ?? '')?.[1]) * 1000;
    // To fetch it, to restore it, and to count what is there.
    const longestMs = waitMs + verifyMs + 3 * defaultLimits.dumpMs;
    expect(spanMs(one(unit, 'Service.TimeoutStartSec'))).toBeGreaterThan(longestMs + 60 * 60_000);
  });

  it.each(['listen', 'claim'])(
    'give a window of %s and the wait for its lock more time than both',
    (name) => {
      const unit = parseUnit(`reeve-${name}.service`);
      const [windowMs = 0, waitMs = 0] = [...(one(unit, 'Service.ExecStart') ?? '').matchAll(/(\d+)/g)].map(
        ([seconds]) => Number(seconds) * 1000,
      );
      expect(windowMs).toBe(15 * 60_000);
      expect(spanMs(one(unit, 'Service.RuntimeMaxSec'))).toBeGreaterThan(windowMs + waitMs + 60_000);
    },
  );

  it.each(started)(
    '%s takes a busy lock and a stop that was asked for for no failure, and tells of every other',
    (name, unit) => {
      expect(one(unit, 'Service.SuccessExitStatus')).toBe('75 143');
      expect(one(unit, 'Unit.OnFailure')).toBe('reeve-failed@%n.service');
      expect(one(unit, 'Unit.StartLimitIntervalSec')).toBe('0');
      const concern = /^reeve-(.+)\.service$/.exec(name)?.[1];
      expect(one(unit, 'Service.ExecStopPost')).toBe(
        `+/bin/sh -c '[ "$SERVICE_RESULT" = success ] || NODE_DISABLE_COMPILE_CACHE=1 exec /usr/local/bin/reeve ended ${concern}'`,
      );
    },
  );

  it('never call the failure hook for the failure hook', () => {
    expect(parseUnit('reeve-failed@.service').settings.has('Unit.OnFailure')).toBe(false);
  });

  it.each(confined)('%s makes its directories, or does without them (O47, O48)', (_, unit) => {
    expect(unit.settings.has('Service.RuntimeDirectory')).toBe(false);
    expect(one(unit, 'Service.StateDirectory')).toBe('reeve');
    expect(one(unit, 'Service.CacheDirectory')).toBe('reeve');
    // Made by the first command, where it is missing.
    const keepsBackups = unit.name.startsWith('reeve-backup') ? ` -${backupsDirectory}` : '';
    expect(one(unit, 'Service.ReadWritePaths')).toBe(`-/run/reeve${keepsBackups}`);
    expect(one(unit, 'Service.ExecStartPre')).toMatch(
      /^\+.*test -d \/run\/reeve\/locks \|\| exec systemd-tmpfiles --create reeve\.conf'$/,
    );
  });

  it.each(confined)('%s has the same sandbox as the others, and Node.js lives in it (O49)', (_, unit) => {
    // Its tree is another user's.
    const isExposed = exposedUnits.includes(unit.name) || unit.name === 'reeve-action.service';
    const common = sandboxOf(unit).slice(sandboxOf(unit).indexOf('NoNewPrivileges='));
    const usual = (ownSandbox[unit.name] ?? []).reduce(
      (text, [of, own]) => text.replace(of, own),
      sandboxOf(parseUnit('reeve-reconcile.service')),
    );
    if (isExposed) expect(common).toBe(usual.slice(usual.indexOf('NoNewPrivileges=')));
    else expect(sandboxOf(unit)).toBe(usual);
    expect(unit.settings.has('Service.MemoryDenyWriteExecute')).toBe(false);
    expect(unit.text).toContain('# Never MemoryDenyWriteExecute=');
    if (!isExposed) expect(one(unit, 'Service.CapabilityBoundingSet')).toBe('');
    expect(one(unit, 'Service.ProtectSystem')).toBe('strict');
    expect(one(unit, 'Service.NoNewPrivileges')).toBe('yes');
    expect(unit.settings.has('Service.User')).toBe(false);
  });

  it.each(services.map((service) => [service.unit, service] as const))(
    '%s does not see what it does not need',
    (name, service) => {
      const hidden = hiddenPaths(service).map((path) => `-${path}`);
      const isHidden = hidden.length > 0;
      expect(one(parseUnit(name), 'Service.InaccessiblePaths')).toBe(isHidden ? hidden.join(' ') : undefined);
    },
  );

  it.each(services.map((service) => [service.unit, service] as const))(
    '%s writes compiled code only where whoever writes it is as good as root anyway',
    (name, { engine }) => {
      const readOnly = engine ? undefined : '-/var/cache/reeve/node';
      expect(one(parseUnit(name), 'Service.ReadOnlyPaths')).toBe(readOnly);
    },
  );

  it.each(allServices)('%s is accounted for and named in the journal', (name, unit) => {
    for (const resource of ['CPU', 'Memory', 'IO', 'Tasks']) {
      expect(one(unit, `Service.${resource}Accounting`)).toBe('yes');
    }
    expect(one(unit, 'Service.SyslogIdentifier')).toBe(name.replace(/@?\.service$/, ''));
  });
});
