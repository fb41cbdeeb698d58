// systemd's units of ours: do they run, will the timers fire again, is anything wedged. Pure.
import { type Finding, failure, listNames, ok, orOk, plural, warning } from './finding.ts';

export type UnitState = {
  unit: string;
  load: string;
  active: string;
  sub: string;
  /** systemd's word for how it ended last. */
  result: string;
  /** Timers: an instant or a span in systemd's words, empty or `infinity` for none. */
  nextRealtime: string;
  nextMonotonic: string;
  /** Units that start it with them. */
  wantedBy: readonly string[];
  /** Its files have changed since systemd read them. */
  needsReload: boolean;
  /** What it needs is not on this machine, so that it was not started: the balancer's socket without HAProxy. */
  isUnneeded: boolean;
  /** For how long it has been active; undefined for one that is not. */
  activeForMs?: number;
};

export type UnitStates = {
  units: readonly UnitState[];
  /** What `reeve units render --write` would change. */
  pendingChanges: readonly string[];
};

const rootTarget = 'reeve.target';

export function judgeUnits({ units, pendingChanges }: UnitStates): Finding[] {
  const installed = units.filter(({ load }) => load === 'loaded');
  if (installed.length === 0) {
    return [warning('the units are not installed: nothing runs by itself', { fix: 'scripts/install' })];
  }
  const findings = [
    ...judgeTarget(installed),
    ...judgeStopped(installed),
    ...installed.flatMap(judgeResult),
    ...judgeReload(installed),
    ...judgeChanges(pendingChanges),
  ];
  return orOk(findings, ok(`${plural(installed.length, 'unit')} in order`));
}

/** Timers that look active and will never fire are the worst of all: nothing tells of them. */
export function judgeTimers({ units }: UnitStates): Finding[] {
  const timers = units.filter(({ unit, load }) => unit.endsWith('.timer') && load === 'loaded');
  const active = timers.filter((timer) => timer.active === 'active');
  const never = active.filter((timer) => !willFire(timer));
  const findings = never.map(({ unit }) =>
    failure('it has no next run', { where: unit, fix: `systemctl restart ${unit}` }),
  );
  return timers.length === 0
    ? []
    : orOk(findings, ok(`${plural(active.length, 'timer')}, each with a next run`));
}

/** While its service runs, a timer that counts from that run's end cannot know its next one. */
function willFire({ sub, nextRealtime, nextMonotonic }: UnitState): boolean {
  return sub === 'running' || [nextRealtime, nextMonotonic].some(isInstant);
}

function isInstant(text: string): boolean {
  return !['', '0', 'n/a', 'infinity', '18446744073709551615'].includes(text);
}

function judgeTarget(units: readonly UnitState[]): Finding[] {
  const target = units.find(({ unit }) => unit === rootTarget);
  if (target === undefined || target.active === 'active') return [];
  const fix = `systemctl enable --now ${rootTarget}`;
  return [warning('it is stopped: nothing runs by itself', { where: rootTarget, fix })];
}

/** Of what waits for something: a service that is not running just now is as it should be. */
function judgeStopped(units: readonly UnitState[]): Finding[] {
  const started = new Set(units.filter(({ active }) => active === 'active').map(({ unit }) => unit));
  return units.flatMap(({ unit, active, wantedBy, isUnneeded }) => {
    const wants = wantedBy.find((target) => started.has(target));
    if (!/\.(timer|path|socket)$/.test(unit) || active !== 'inactive' || wants === undefined) return [];
    if (isUnneeded) return [];
    return [
      failure(`it is stopped, although ${wants} wants it`, { where: unit, fix: `systemctl start ${unit}` }),
    ];
  });
}

function judgeResult({ unit, active, result }: UnitState): Finding[] {
  if (/-limit-hit$/.test(result)) {
    const fix = `systemctl reset-failed ${unit}, then systemctl start ${unit}`;
    return [failure(`it was started too often and will not start again (${result})`, { where: unit, fix })];
  }
  if (active !== 'failed') return [];
  const fix = `journalctl -u ${unit} -n 20 tells why`;
  return [failure(`it has failed (${result})`, { where: unit, fix })];
}

function judgeReload(units: readonly UnitState[]): Finding[] {
  const changed = units.filter(({ needsReload }) => needsReload).map(({ unit }) => unit);
  if (changed.length === 0) return [];
  const details = { where: listNames(changed), fix: 'systemctl daemon-reload' };
  return [warning('changed on disk since systemd read them', details)];
}

function judgeChanges(changes: readonly string[]): Finding[] {
  if (changes.length === 0) return [];
  const details = { where: listNames(changes), fix: '`reeve units render --write`' };
  return [warning('the configuration has changed since the units were rendered', details)];
}
