// Every write, rename, sync and connection of a tick fails once, or is the last thing the process does. Caddy and HAProxy
// serve no less than before, what the edge remembers is whole, and the next tick goes on.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, inject, it } from 'vitest';
import type { ShardBackend } from '../../../src/lib/cluster/wire.ts';
import type { EdgeDocument } from '../../../src/lib/edge/documents.ts';
import { readLiveRoutes } from '../../../src/lib/edge/live-routes.ts';
import { describeError } from '../../../src/lib/errors.ts';
import { startBackend, type TestBackend } from '../../support/backends.ts';
import { fetchOnceServed, NotConnectedError } from '../../support/caddy.ts';
import { startEdge, type TestEdge } from '../../support/edge.ts';
import { attemptAtCalls, type FaultRun, fileCalls, runUnderFault } from '../../support/faults.ts';

const kill = 'signal=KILL';

/** `least`: how many calls of the kind a tick makes at least; fewer means that the fault tests nothing. */
type Row = { call: keyof typeof fileCalls; effect: string; least: number };

const rows: Row[] = [
  { call: 'write', effect: kill, least: 6 },
  { call: 'write', effect: 'error=ENOSPC', least: 6 },
  { call: 'sync', effect: 'error=EIO', least: 6 },
  { call: 'rename', effect: kill, least: 6 },
  { call: 'rename', effect: 'error=EIO', least: 6 },
  { call: 'connect', effect: kill, least: 2 },
  { call: 'connect', effect: 'error=ECONNREFUSED', least: 2 },
];
const cases = (['caddy', 'haproxy'] as const).flatMap((balancer) =>
  rows.map((row) => ({ ...row, balancer })),
);

describe('a tick of an edge', () => {
  it.each(cases)(
    'that balances by $balancer survives $effect at any $call (R46, R55, O55)',
    { timeout: 300_000 },
    async ({ balancer, call, effect, least }) => {
      const world = await startWorld(balancer);
      const fault = { calls: fileCalls[call], effect };
      let round = 0;
      const { calls } = await attemptAtCalls(async (n) => {
        round += 1;
        const before = await world.served();
        const oldEtag = readEtag(world.edge);
        world.change(round);
        const command = [inject('reeveBin'), 'edge', '--json'];
        const run = await runUnderFault(command, world.edge.environment, fault, n);
        requireSettledExit(run);
        if (!run.hit) expect(run.end.status).toBe(0);
        expect(await world.served()).toEqual(expect.arrayContaining(before));
        requireWholeMemory(world.edge, oldEtag, round);
        await world.converge(round);
        return run;
      });
      expect(calls).toBeGreaterThanOrEqual(least);
      expect(await world.stopAsking()).toEqual([]);
    },
  );
});

type World = {
  edge: TestEdge;
  /** Another domain, and another backend instead of one that is leaving. */
  change(n: number): void;
  /** Domains in force at Caddy. */
  served(): Promise<string[]>;
  /** Ticks until there is nothing to do; what was asked for last is served then. */
  converge(n: number): Promise<void>;
  /** What was not answered with 200 of all that was asked since the start. */
  stopAsking(): Promise<unknown[]>;
};

async function startWorld(balancer: 'caddy' | 'haproxy'): Promise<World> {
  const edge = await startEdge({ balancer });
  const names = ['steady', 'even', 'odd'];
  const [steady, even, odd] = (await Promise.all(names.map((name) => startBackend(name)))) as [
    TestBackend,
    TestBackend,
    TestBackend,
  ];
  const at = (domain: string, { port }: { port: number }): ShardBackend => ({ domain, hostPort: port });
  const own = (n: number): { port: number } => (n % 2 === 0 ? even : odd);
  edge.publish('app-1', [at('steady.test', steady)]);
  const change = (n: number): void => {
    const domains = Array.from({ length: n + 1 }, (_, index) => `d${index}.test`);
    // A name of its own in every run; all of them move from one backend to the other, which its node has announced.
    edge.publish(
      'app-2',
      domains.map((domain) => at(domain, own(n))),
    );
    mkdirSync(join(edge.storeDir, 'nodes/app-2'), { recursive: true });
    const draining = [{ domain: 'd0.test', hostPort: own(n + 1).port }];
    writeFileSync(
      join(edge.storeDir, 'nodes/app-2/reeve.json'),
      JSON.stringify({ nodeId: 'app-2', draining }),
    );
    forgetLastPush(edge);
  };
  const converge = async (n: number): Promise<void> => {
    forgetLastPush(edge);
    await edge.tick();
    const name = n % 2 === 0 ? 'even' : 'odd';
    expect((await fetchOnceServed(edge.caddy, `d${n}.test`)).body).toContain(name);
    expect((await fetchOnceServed(edge.caddy, 'd0.test')).body).toContain(name);
    await expect.poll(async () => (await edge.tick()).outcome, { timeout: 20_000 }).toBe('nothing-to-do');
    expect(edge.reeveJson()).toMatchObject({
      converged: true,
      edge: { applied: { 'app-2': expect.anything() } },
    });
  };
  change(0);
  await converge(0);
  await fetchOnceServed(edge.caddy, 'steady.test');
  const served = async (): Promise<string[]> => {
    const response = await fetch(`${edge.caddy.settings.admin}/config/`);
    return readLiveRoutes(await response.text()).map(({ domain }) => domain);
  };
  return { edge, change, served, converge, stopAsking: askAllTheTime(edge) };
}

/**
 * A domain that no run changes anything about. Each new configuration gives Caddy 2.6 new listeners and certificates, and
 * whoever is just connecting may have to connect again; an answer is never anything but 200.
 */
function askAllTheTime({ caddy }: TestEdge): () => Promise<unknown[]> {
  const failures: unknown[] = [];
  const waits: number[] = [];
  let isAsking = true;
  const asking = (async () => {
    while (isAsking) {
      const { answer, waitedMs } = await askAgain(() => caddy.fetch('steady.test'));
      if (typeof answer === 'string' || answer.status !== 200) failures.push(answer);
      if (waitedMs > 0) waits.push(waitedMs);
      await sleep(20);
    }
  })();
  return async () => {
    isAsking = false;
    await asking;
    if (waits.length > 0) {
      const longest = Math.round(Math.max(...waits));
      console.log(
        `figure: while Caddy changed ${waits.length} had to connect again, for ${longest} ms at most`,
      );
    }
    return failures;
  };
}

/** Until somebody takes it, for a while; `waitedMs` is 0 where the first try had an answer. */
async function askAgain<T>(ask: () => Promise<T>): Promise<{ answer: T | string; waitedMs: number }> {
  const began = performance.now();
  for (let tries = 1; ; tries += 1) {
    try {
      const answer = await ask();
      return { answer, waitedMs: tries === 1 ? 0 : performance.now() - began };
    } catch (error) {
      if (tries === 5 || !isNotTaken(error))
        return { answer: describeError(error), waitedMs: performance.now() - began };
      await sleep(50);
    }
  }
}

/** Caddy has reset or refused the handshake, before anything was sent; a timeout is a failure. */
function isNotTaken(error: unknown): boolean {
  if (!(error instanceof NotConnectedError)) return false;
  // By its words: its code depends on whether it was read or met a write.
  return error.code === 'ECONNRESET' || error.message.includes('tlsv1 alert internal error');
}

/** So that no run has to wait two seconds for the one before. */
function forgetLastPush(edge: TestEdge): void {
  const path = join(edge.root, 'state/edge.json');
  if (!existsSync(path)) return;
  const document = { ...(readState(edge, 'edge.json') as object), lastReloadAt: null };
  writeFileSync(path, `${JSON.stringify(document, null, 2)}\n`);
}

/** Killed, or told as what it is; never as a bug of ours. */
function requireSettledExit({ end }: FaultRun): void {
  if (end.signal === 'SIGKILL' || end.status === 137) return;
  expect([0, 1, 69], end.stdout + end.stderr).toContain(end.status);
}

/** Old or new, never a third thing; and no etag without its shard. */
function requireWholeMemory(edge: TestEdge, oldEtag: string | undefined, n: number): void {
  const { shards } = readState(edge, 'edge-shards.json') as {
    shards: Record<string, { backends: unknown[] }>;
  };
  const count = shards['app-2']?.backends.length;
  const isKnown = readEtag(edge) !== oldEtag;
  // Of the run before there are n, of this one n + 1.
  expect(isKnown ? [n + 1] : [n, n + 1]).toContain(count);
}

function readEtag(edge: TestEdge): string | undefined {
  return (readState(edge, 'edge.json') as EdgeDocument).etags['app-2'];
}

function readState(edge: TestEdge, name: string): unknown {
  return JSON.parse(readFileSync(join(edge.root, 'state', name), 'utf8'));
}
