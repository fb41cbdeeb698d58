// One liveness report to each place that expects one: the store of a cluster's node, the server that hands out jobs, and the
// control plane that hands out commands. One that fails does not keep the others from theirs. Another control plane is another
// line in listReports.
import type { CommandsConfig } from '../config/config.ts';
import { requireNode } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { describeError, StepError } from '../errors.ts';
import { withLock } from '../lock/with-locks.ts';
import type { Outcome } from '../outcome.ts';
import { recordRun } from '../state/record-run.ts';

export type HeartbeatOptions = {
  waitMs: number;
  /** What else goes with each heartbeat of commands. A tick that beats by itself has nothing to do with the proxy. */
  withCommands?: (ctx: Context, commands: CommandsConfig) => Promise<Outcome>;
};

export async function runHeartbeat(
  ctx: Context,
  { waitMs, withCommands }: HeartbeatOptions,
): Promise<Outcome> {
  const reports = listReports(ctx, withCommands);
  const work = async (): Promise<Outcome> => {
    // Said twice, it does no harm: so it is sent while its begin is being written down.
    const sending = sendAll(reports);
    const settled = sending.catch(() => {});
    try {
      return await recordRun(ctx, 'heartbeat', () => sending);
    } finally {
      await settled;
    }
  };
  return await withLock(ctx, 'heartbeat', work, { waitMs });
}

type Report = () => Promise<Outcome>;

/** What a node has no use for is not even loaded. Throws ConfigError where nobody expects a report. */
function listReports(ctx: Context, withCommands: HeartbeatOptions['withCommands']): Report[] {
  const { cluster, jobs, commands } = ctx.config;
  const reports: Report[] = [];
  if (cluster?.nodeId !== undefined || (jobs === undefined && commands === undefined)) {
    const node = requireNode(ctx.config);
    reports.push(async () => await (await import('./report-store.ts')).reportToStore(ctx, node));
  }
  if (jobs !== undefined) {
    // Loaded while the lock is waited for.
    const loading = import('./report-jobs.ts');
    loading.then(({ loadAhead }) => loadAhead()).catch(() => {});
    reports.push(async () => await (await loading).reportToJobs(ctx, jobs));
  }
  if (commands !== undefined) {
    reports.push(async () => await (await import('./report-commands.ts')).reportToCommands(ctx, commands));
    if (withCommands !== undefined) reports.push(() => withCommands(ctx, commands));
  }
  return reports;
}

/** All at once. Throws the one error, or StepError with all of them, when every report has come to its end. */
async function sendAll(reports: readonly Report[]): Promise<Outcome> {
  const settled = await Promise.allSettled(reports.map(async (report) => await report()));
  const errors = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  if (errors.length > 1) throw new StepError(errors.map(describeError).join('; '), { code: 'not-alive' });
  if (errors.length > 0) throw errors[0];
  const outcomes = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const kinds = new Set(outcomes.map(({ outcome }) => outcome));
  const isIdle = !kinds.has('done') && !kinds.has('deferred');
  return {
    outcome: kinds.has('deferred') ? 'deferred' : isIdle ? 'nothing-to-do' : 'done',
    text: outcomes.flatMap(({ text }) => text),
    data: Object.assign({}, ...outcomes.map(({ data }) => data)),
  };
}
