// `doctor`: every check at once, one line each.
import { loadConfigAnyway } from '../config/load.ts';
import type { BaseContext } from '../context.ts';
import type { Outcome } from '../outcome.ts';
import { foldLines } from '../report/table.ts';
import { type CheckedFinding, runChecks } from './check.ts';
import { checks } from './checks.ts';
import { type FindingLevel, plural } from './finding.ts';
import { gatherUnitStates } from './gather-units.ts';
import type { World } from './world.ts';

/** Of each check. */
const deadlineMs = 5_000;

/** `failed` (exit 1) if anything is wrong; a warning alone is not. */
export async function runDoctor(base: BaseContext): Promise<Outcome> {
  // What is wrong with the configuration is the first check's to tell.
  const config = await loadConfigAnyway(base.paths, base.overrides).catch(() => undefined);
  let units: ReturnType<World['units']> | undefined;
  const world: World = {
    base,
    now: base.clock.now(),
    config,
    signal: AbortSignal.any([base.signal, AbortSignal.timeout(deadlineMs)]),
    units: () => {
      units ??= gatherUnitStates();
      return units;
    },
  };
  const findings = await runChecks(checks, world, deadlineMs);
  const count = (level: FindingLevel): number => findings.filter((finding) => finding.level === level).length;
  const [warnings, failures] = [count('warning'), count('failure')];
  const checked = findings.length - count('skipped');
  return {
    outcome: failures > 0 ? 'failed' : 'done',
    text: [
      ...findings.map(renderFinding),
      `doctor: ${plural(checked, 'check')}, ${plural(warnings, 'warning')}, ${plural(failures, 'failure')}`,
    ],
    data: { findings, checks: checked, warnings, failures },
  };
}

const labels: Readonly<Record<FindingLevel, string>> = {
  ok: 'ok  ',
  skipped: 'skip',
  warning: 'warn',
  failure: 'FAIL',
};

function renderFinding({ level, check, what, where, fix }: CheckedFinding): string {
  const place = where === undefined ? '' : ` (${where})`;
  const mend = fix === undefined ? '' : `; fix: ${fix}`;
  return `${labels[level]} ${check}: ${foldLines(what)}${place}${mend}`;
}
