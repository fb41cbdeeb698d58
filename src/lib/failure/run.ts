// What OnFailure= starts: keeps how a unit failed, then tells people, once an episode. A hook that fails, a journal that cannot
// be read or a broken configuration fail nothing here: only a record that cannot be written does.
import { hostname } from 'node:os';
import type { Config } from '../config/config.ts';
import type { ServiceEnd } from '../config/environment.ts';
import type { BaseContext } from '../context.ts';
import { describeError, UsageError } from '../errors.ts';
import type { Outcome } from '../outcome.ts';
import { concernPattern, readRun } from '../state/run-record.ts';
import { readUnitLog, showUnits } from '../systemd/show.ts';
import { callHook, type FailureMessage } from './hook.ts';
import { concernOf, describeFailure, planFailure } from './plan.ts';
import { type FailureRecord, readFailure, writeFailure } from './record.ts';

export type FailedUnit = {
  unit: string;
  /** How it ended, where systemd has told us. */
  end: ServiceEnd | undefined;
  /** As much of the configuration as can be read. Throws where that is nothing. */
  loadConfig(): Promise<Config>;
};

const lastLines = 20;

export async function recordFailure(ctx: BaseContext, failed: FailedUnit): Promise<Outcome> {
  const { unit } = failed;
  if (!/^[A-Za-z0-9:_.\\@-]{1,255}$/.test(unit)) {
    throw new UsageError(
      `${JSON.stringify(unit)} is no unit: give its full name, as reeve-reconcile.service`,
    );
  }
  const about = { paths: ctx.paths, now: ctx.clock.now(), log: ctx.log };
  const end = failed.end ?? (await askSystemd(ctx, unit));
  const { record, notify } = planFailure({
    now: about.now,
    unit,
    result: end?.result ?? 'unknown',
    status: end?.status ?? null,
    invocationId: end?.invocationId ?? null,
    lastLines: await readLines(ctx, unit),
    previous: await readFailure(about, unit),
    lastGoodAt: await readLastGood(about, unit),
  });
  // Before anybody is told: a hook that hangs or kills us must not cost the record.
  await writeFailure(ctx.paths, record);
  const told = notify ? await tell(ctx, failed, record) : record;
  return {
    outcome: 'done',
    text: [describeFailure(record, hostname())],
    data: { failure: told, notified: told !== record && told.notified },
  };
}

async function askSystemd(ctx: BaseContext, unit: string): Promise<ServiceEnd | undefined> {
  try {
    const names = ['Result', 'ExecMainStatus', 'ExecMainCode', 'InvocationID'];
    const [shown] = await showUnits([unit], names);
    if (shown?.['Result'] === undefined) return undefined;
    return {
      result: shown['Result'],
      code: shown['ExecMainCode'],
      status: shown['ExecMainStatus'],
      invocationId: shown['InvocationID'] || undefined,
    };
  } catch (error) {
    ctx.log.warning(`how ${unit} ended is not known: ${describeError(error)}`);
    return undefined;
  }
}

async function readLines(ctx: BaseContext, unit: string): Promise<string[]> {
  try {
    return await readUnitLog(unit, lastLines);
  } catch (error) {
    ctx.log.warning(`the last lines of ${unit} are not known: ${describeError(error)}`);
    return [];
  }
}

async function readLastGood(
  about: Parameters<typeof readRun>[0],
  unit: string,
): Promise<string | null | undefined> {
  const concern = concernOf(unit);
  if (concern === undefined || !concernPattern.test(concern)) return undefined;
  return (await readRun(about, concern))?.lastGoodAt;
}

/** The record with what came of it. Repeated rather than lost, should we be killed in between. */
async function tell(ctx: BaseContext, failed: FailedUnit, record: FailureRecord): Promise<FailureRecord> {
  const triedAt = ctx.clock.now().toISOString();
  const config = await failed.loadConfig().catch((error: unknown) => {
    ctx.log.warning(`whom to tell is not known: ${describeError(error)}`);
    return undefined;
  });
  const hook = config?.hooks.failure;
  if (hook === undefined) return record;
  const error = await callHook(hook, toMessage(record, config?.cluster?.nodeId));
  if (error !== undefined) ctx.log.error(`the failure hook failed: ${error}`);
  const told = { ...record, notified: error === undefined, hook: { triedAt, error: error ?? null } };
  await writeFailure(ctx.paths, told);
  return told;
}

function toMessage(record: FailureRecord, nodeId: string | undefined): FailureMessage {
  const { unit, result, status, count, firstAt, lastAt, invocationId, lastLines } = record;
  const host = hostname();
  return {
    version: 1,
    ...{ unit, host, node: nodeId ?? null, result, status, message: describeFailure(record, host) },
    ...{ count, firstAt, lastAt, invocationId, lastLines },
  };
}
