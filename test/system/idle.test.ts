// What a node costs that has nothing to do: only runs, nothing between them, and no more than five times what the same
// units cost around an empty program. Beside it stands that program alone, which shows what the sandbox costs.
// Ten minutes at the shipped intervals is the figure that is documented: REEVE_IDLE_MINUTES=10.
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Host } from '../support/host.ts';
import { type Installed, startInstalled } from '../support/installed.ts';
import { aWebDeploy, aWorkerDeploy } from '../support/services.ts';
import { appTimers, describeHost, tellFigure } from '../support/system.ts';

const minutes = Number(process.env['REEVE_IDLE_MINUTES'] ?? '1');
/** In a minute the shipped intervals fire once or twice: shorter ones give enough runs to count. */
const intervals = minutes < 5 ? { tick: '5s', liveness: '5s' } : {};
const concerns = ['reconcile', 'heartbeat'];
const kinds = ['reeve', 'same', 'bare'] as const;
const words = { reeve: 'reeve', same: 'an empty program in the same unit', bare: 'a bare empty program' };
const emptyProgram = 'ExecStart=/opt/reeve/current/runtime/node /usr/local/lib/empty.mjs';

describeHost('an idle node', () => {
  let node: Installed;
  let host: Host;
  beforeAll(async () => {
    node = await startInstalled({ cluster: { intervals } });
    host = node.host;
    await node.deploy([aWebDeploy(), aWorkerDeploy()]);
    await host.waitFor('the services', async () =>
      (await node.status()).services.every(({ state }) => state === 'running'),
    );
    for (const concern of concerns) await measure(concern);
    await host.write('/usr/local/lib/empty.mjs', '');
    await host.output(['systemctl', 'daemon-reload']);
    // Their runs are rare, and one that comes just then is not looked for.
    await host.output(['systemctl', 'stop', ...appTimers.filter((timer) => !isOfConcern(timer))]);
    for (const concern of concerns) {
      // A slice that was started stays, and with it the count of what its services have used.
      for (const kind of kinds) await host.output(['systemctl', 'start', sliceOf(concern, kind)]);
      await host.output(['systemctl', 'start', `same-${concern}.timer`, `bare-${concern}.timer`]);
    }
  });
  afterAll(() => host?.stop());

  /**
   * The concern's service in a slice of its own, and beside it two timers of the same times: for an empty program in the
   * same unit, and for one without anything around it.
   */
  async function measure(concern: string): Promise<void> {
    const unit = await host.read(`/usr/lib/systemd/system/reeve-${concern}.service`);
    const timer = await host.output(['systemctl', 'cat', `reeve-${concern}.timer`]);
    const services = {
      same: unit
        .replaceAll(/^(ExecStartPre|ExecStopPost|OnFailure)=.*$/gm, '')
        .replace(/^ExecStart=.*$/m, emptyProgram),
      bare: `[Service]\nType=oneshot\n${emptyProgram}\n`,
    };
    for (const [kind, text] of Object.entries(services)) {
      const own = `[Service]\nSlice=${sliceOf(concern, kind)}\n`;
      await host.write(`/etc/systemd/system/${kind}-${concern}.service`, text.replace('[Service]\n', own));
      await host.write(`/etc/systemd/system/${kind}-${concern}.timer`, timer.replaceAll(/^PartOf=.*$/gm, ''));
    }
    const own = `[Service]\nSlice=${sliceOf(concern, 'reeve')}\n`;
    await host.write(`/etc/systemd/system/reeve-${concern}.service.d/slice.conf`, own);
  }

  it(`has no process between its runs, which cost at most five of an empty program in the same unit, for ${minutes} min`, {
    timeout: (minutes * 60 + 240) * 1000,
  }, async () => {
    await quiet();
    const quietAt = Date.now();
    const usageBefore = await readUsage();
    const seen = await watchProcesses(host, minutes * 60_000);
    await quiet();
    const usage = await readUsage();
    // All of it: between two commands of its unit a run has no process, and may have begun long before that moment.
    const journal = await host.journal('SYSLOG_IDENTIFIER=systemd');

    // Every process belonged to a run that had begun and had not ended.
    const ended = (unit: string): Run[] => runsOf(journal, unit).filter(({ endedAt }) => endedAt >= quietAt);
    const runs = concerns.flatMap((concern) => ended(`reeve-${concern}.service`));
    const strays = seen.processes.filter(
      ({ unit, firstAt, lastAt }) =>
        !runs.some(
          (run) => run.unit === unit && run.startedAt <= firstAt + 100 && lastAt <= run.endedAt + 100,
        ),
    );
    expect(strays).toEqual([]);
    expect(new Set(seen.processes.map(({ unit }) => unit))).toEqual(
      new Set(concerns.map((concern) => `reeve-${concern}.service`)),
    );
    tellFigure(
      `${seen.samples} samples in ${minutes} min: ${seen.empty} of them with no process of reeve's, ` +
        `${seen.processes.length} processes in ${runs.length} runs`,
    );
    expect(seen.empty).toBeGreaterThan(seen.samples / 2);

    for (const concern of concerns) {
      const [reeve, same, bare] = kinds.map((kind) => {
        const slice = sliceOf(concern, kind);
        const used = (usage[slice] ?? Number.NaN) - (usageBefore[slice] ?? Number.NaN);
        const count = ended(`${kind}-${concern}.service`).length;
        tellFigure(
          `${concern}, ${words[kind]}: ${used.toFixed(2)} s of CPU in ${count} runs, ${((used / count) * 1000).toFixed(0)} ms each`,
        );
        return used / count;
      }) as [number, number, number];
      tellFigure(
        `${concern}: ${(reeve / same).toFixed(1)} times an empty program in the same unit, ${(reeve / bare).toFixed(1)} times a bare one`,
      );
      expect(reeve / same).toBeLessThanOrEqual(5);
    }
  });

  /** No run of either kind is under way, so that what has been used belongs to runs that can be counted. */
  async function quiet(): Promise<void> {
    await host.waitFor(
      'a moment without runs',
      async () =>
        findProcesses(host.outside('/sys/fs/cgroup/systemd'), /^(reeve|same|bare)-.*\.service$/).length === 0,
      { everyMs: 5 },
    );
  }

  /** Seconds of CPU by slice. */
  async function readUsage(): Promise<Record<string, number>> {
    const slices = concerns.flatMap((concern) => kinds.map((kind) => sliceOf(concern, kind)));
    const used = await Promise.all(slices.map(cpuSeconds));
    return Object.fromEntries(slices.map((slice, index) => [slice, used[index] ?? Number.NaN]));
  }

  /** The second hierarchy counts without a controller, so that it works beside the first as well. */
  async function cpuSeconds(slice: string): Promise<number> {
    const stat = await host.sh(
      `cat /sys/fs/cgroup/unified/idle.slice/${slice}/cpu.stat 2>/dev/null || cat /sys/fs/cgroup/idle.slice/${slice}/cpu.stat`,
    );
    return Number(/^usage_usec (\d+)$/m.exec(stat)?.[1]) / 1e6;
  }
});

function sliceOf(concern: string, kind: string): string {
  return `idle-${kind}${concern}.slice`;
}

function isOfConcern(timer: string): boolean {
  return concerns.some((concern) => timer === `reeve-${concern}.timer`);
}

type Run = { unit: string; startedAt: number; endedAt: number };

/** Runs of a service by what systemd says in the journal; times in milliseconds. One that goes on has no end yet. */
function runsOf(journal: Awaited<ReturnType<Host['journal']>>, unit: string): Run[] {
  const runs: Run[] = [];
  for (const { message, at, fields } of journal) {
    if (fields['UNIT'] !== unit) continue;
    if (message.startsWith('Starting '))
      runs.push({ unit, startedAt: at / 1000, endedAt: Number.POSITIVE_INFINITY });
    const run = runs.at(-1);
    if (run !== undefined && /^(Finished|Failed) /.test(message)) run.endedAt = at / 1000;
  }
  return runs;
}

type Seen = { unit: string; pid: number; firstAt: number; lastAt: number };

/**
 * Looks at the control groups of reeve's units fifty times a second. Anything found in them is noted: by the end of the first look at it,
 * and the beginning of the last one.
 */
async function watchProcesses(
  host: Host,
  durationMs: number,
): Promise<{ samples: number; empty: number; processes: Seen[] }> {
  const processes = new Map<string, Seen>();
  let [samples, empty] = [0, 0];
  const endAt = performance.now() + durationMs;
  while (performance.now() < endAt) {
    const lastAt = Date.now();
    const found = findProcesses(host.outside('/sys/fs/cgroup/systemd'));
    const at = Date.now();
    samples += 1;
    if (found.length === 0) empty += 1;
    for (const { unit, pid } of found) {
      const key = `${unit} ${pid}`;
      processes.set(key, { unit, pid, firstAt: processes.get(key)?.firstAt ?? at, lastAt });
    }
    await new Promise((tick) => setTimeout(tick, 20));
  }
  return { samples, empty, processes: [...processes.values()] };
}

/** Below every group whose name is a unit of that kind, wherever it is. */
function findProcesses(
  directory: string,
  pattern = /^reeve.*\.service$/,
  unit?: string,
): { unit: string; pid: number }[] {
  const own = unit === undefined ? [] : readPids(directory).map((pid) => ({ unit, pid }));
  const below = listDirectories(directory).flatMap((name) =>
    findProcesses(`${directory}/${name}`, pattern, unit ?? (pattern.test(name) ? name : undefined)),
  );
  return [...own, ...below];
}

/** A group goes when its run ends: none then. */
function readPids(directory: string): number[] {
  try {
    return readFileSync(`${directory}/cgroup.procs`, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map(Number);
  } catch {
    return [];
  }
}

function listDirectories(directory: string): string[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}
