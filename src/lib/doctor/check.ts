// One check: it looks, it judges, and it comes to an end, whatever hangs.
import { describeError } from '../errors.ts';
import { type Finding, failure } from './finding.ts';
import type { World } from './world.ts';

export type Check = {
  name: string;
  /** May throw: that is a finding, too. */
  run(world: World): Promise<readonly Finding[]>;
};

export type CheckedFinding = Finding & { check: string };

/** All at once; a check that does not answer in time is a failure of its own. */
export async function runChecks(
  checks: readonly Check[],
  world: World,
  deadlineMs: number,
): Promise<CheckedFinding[]> {
  const results = await Promise.all(
    checks.map(async ({ name, run }) => {
      const findings = await Promise.race([settle(run, world), giveUp(deadlineMs)]);
      return findings.map((finding) => ({ check: name, ...finding }));
    }),
  );
  return results.flat();
}

async function settle(run: Check['run'], world: World): Promise<readonly Finding[]> {
  try {
    return await run(world);
  } catch (error) {
    return [failure(`it cannot be checked: ${describeError(error)}`)];
  }
}

function giveUp(deadlineMs: number): Promise<readonly Finding[]> {
  return new Promise((resolve) => {
    const late = (): void => resolve([failure(`no answer within ${deadlineMs / 1000} s`)]);
    setTimeout(late, deadlineMs).unref();
  });
}
