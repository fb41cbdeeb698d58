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
  /** Its files have changed since systemd read them. */
  needsReload: boolean;
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
    ...installed.flatMap(judgeResult),
    ...judgeReload(installed),
    ...judgeChanges(pendingChanges),
  ];
  return orOk(findings, ok(`${plural(installed.length, 'unit')} in order`));
}

/** Timers that look active and will never fire are the worst of all: nothing tells of them. */
export function judgeTimers({ units }: UnitStates): Finding[] {
  const isStarted = units.some(({ unit, active }) => unit === rootTarget && active === 'active');
  const timers = units.filter(({ unit, load }) => unit.endsWith('.timer') && load === 'loaded');
  const idle = timers.filter(({ active }) => active !== 'active' && active !== 'failed');
  const never = timers.filter((timer) => timer.active === 'active' && !willFire(timer));
  const findings = never.map(({ unit }) =>
    failure('it has no next run', { where: unit, fix: `systemctl restart ${unit}` }),
  );
  if (isStarted && timers.length > 0 && idle.length === timers.length) {
    const where = listNames(idle.map(({ unit }) => unit));
    findings.push(failure('no timer runs', { where, fix: '`reeve units render --write`' }));
  }
  const active = timers.length - idle.length;
  return timers.length === 0 ? [] : orOk(findings, ok(`${plural(active, 'timer')}, each with a next run`));
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
