// A hundred approved redeploys between two booted machines, while both ends are killed in the act, the link is cut and returns, power
// fails, and the clocks are an hour apart, first the one and then the other. REEVE_SEED=N chooses the order of it all.

import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { fakeClock } from '../support/faked-clock.ts';
import type { Host } from '../support/host.ts';
import { createRandom, type Random } from '../support/random.ts';
import { describeHost, tellFigure } from '../support/system.ts';
import { startTwoHosts, type TwoHosts } from '../support/two-hosts.ts';
import {
  countHits,
  harm,
  readFinals,
  setClock,
  shuffleHarms,
  watchFinals,
} from '../support/two-hosts-faults.ts';

const seed = Number(process.env['REEVE_SEED'] ?? 1);
const services = Array.from({ length: 100 }, (_, index) => `s${index}`);
const idOf = (service: string): string => `redeploy-web-1-${service}`;
const batchSize = 5;
const tree = '/opt/homelab/actions';
const state = '/var/lib/reeve/actions';

describeHost('a hundred actions under faults', () => {
  let hosts: TwoHosts;
  beforeAll(async () => {
    console.log(`REEVE_SEED=${seed}`);
    hosts = await startTwoHosts();
    // What a kill has left in the inbox waits for this one: for five minutes as it is shipped.
    const timer = '[Timer]\nOnUnitInactiveSec=20s\n';
    await hosts.node.write('/etc/systemd/system/reeve-deploy-action.timer.d/60-soon.conf', timer);
    await hosts.node.sh('systemctl daemon-reload; systemctl restart reeve-deploy-action.timer');
    await hosts.useTeller(services);
    for (const service of services) await hosts.propose(service);
  }, 300_000);
  afterAll(() => hosts?.stop());

  it('have at most one deploy and exactly one end each, which stays (D36, D41, D43, O70)', async () => {
    const random = createRandom(seed);
    const startedAtMs = performance.now();
    const watch = watchFinals(hosts);
    const harms = shuffleHarms(random);
    await Promise.all([approveInBatches(random), doHarm(harms, random)]);
    const tookS = Math.round((performance.now() - startedAtMs) / 1000);
    await quiet();
    const told = await hosts.told();
    expect(await watch.stop()).toEqual([]);

    const ends = readFinals(hosts) ?? new Map();
    const completed = services.filter((service) => ends.get(idOf(service)) === 'completed');
    const failed = services.filter((service) => ends.get(idOf(service)) === 'failed');
    const begun = told.flatMap((line) => /^begin (\S+)/.exec(line)?.[1] ?? []);
    const done = told.flatMap((line) => /^end (\S+)/.exec(line)?.[1] ?? []);
    const hits = await countHits(hosts);
    tellFigure(
      `100 actions under ${harms.length} faults (seed ${seed}), ${JSON.stringify(hits)}: ${completed.length} completed, ` +
        `${failed.length} failed, ${begun.length} deploys begun, ${done.length} done, ${tookS} s`,
    );
    // Something was really hit of each kind: deploys that were begun and never done among it.
    for (const [what, count] of Object.entries(hits)) expect(count, what).toBeGreaterThan(0);
    expect(begun.length).toBeGreaterThan(done.length);

    expect([...ends.keys()].sort()).toEqual(services.map(idOf).sort());
    expect(completed.length + failed.length).toBe(services.length);
    // None was deployed twice, and what is called completed was.
    expect(begun.toSorted()).toEqual([...new Set(begun)].toSorted());
    expect(completed.filter((service) => !begun.includes(service) || !done.includes(service))).toEqual([]);
    for (const service of completed) expect(readHistory('completed', service)).toEqual(wayTo('completed'));
    for (const service of failed) {
      expect(readHistory('failed', service)).toEqual(wayTo('failed'));
      expect(readAction('failed', service)).toMatch(/unknown|interrupted/);
    }
    // Each node's word is one word, however often it was sent.
    const words = readWords();
    for (const service of services) {
      const end = ends.get(idOf(service)) as string;
      expect([...(words.get(idOf(service)) ?? [])], service).toEqual([end]);
    }
  }, 900_000);

  it('leave nothing behind that is under way', async () => {
    const { control, node } = hosts;
    expect(
      await control.sh(`cd ${tree}; ls -A pending approved running deploy/web-1 | grep json || true`),
    ).toBe('');
    expect(
      await node.sh(`cd ${state}; ls -A inbox outbox; ls processed-deploy-actions | grep '\\.open$' || true`),
    ).toBe('inbox:\n\noutbox:\n');
    expect(
      (await node.output(['sh', '-c', `ls ${state}/processed-deploy-actions/*.json | wc -l`])).trim(),
    ).toBe(`${services.length}`);
  });

  /** The node is an hour ahead of the control host for the first half, and the control host of the node for the second. */
  async function approveInBatches(random: Random): Promise<void> {
    const half = services.length / 2;
    await setClock(hosts, 'node', '+1h');
    await approveBatches(services.slice(0, half), undefined, random);
    await ended(half);
    await setClock(hosts, 'control', '+1h');
    await setClock(hosts, 'node', undefined);
    await approveBatches(services.slice(half), '+1h', random);
    await ended(services.length);
  }

  async function approveBatches(
    some: readonly string[],
    clock: string | undefined,
    random: Random,
  ): Promise<void> {
    for (let first = 0; first < some.length; first += batchSize) {
      await approve(some.slice(first, first + batchSize), clock);
      await sleep(random.below(3_000));
    }
    // Whoever approves was at a machine that lost its power: the person looks, and asks again.
    await hosts.control.waitFor('all to be approved', async () => {
      await approve(some, clock);
      const pending = await hosts.control.sh(`ls ${tree}/pending`);
      return !some.some((service) => pending.split('\n').includes(`${idOf(service)}.json`));
    });
  }

  async function ended(count: number): Promise<void> {
    const isEnded = async (): Promise<boolean> => (readFinals(hosts)?.size ?? 0) >= count;
    await hosts.control.waitFor(`${count} of them to end`, isEnded, { timeoutMs: 300_000, everyMs: 250 });
  }

  async function approve(some: readonly string[], clock: string | undefined): Promise<void> {
    const script = some.map(idOf).map((id) => {
      return `[ ! -e ${tree}/pending/${id}.json ] || reeve action approve --yes --wait 60 ${id}`;
    });
    const env = clock === undefined ? {} : fakeClock(clock);
    await hosts.control.run(['sh', '-c', script.join('\n')], { env });
  }

  async function doHarm(harms: ReturnType<typeof shuffleHarms>, random: Random): Promise<void> {
    for (const what of harms) await harm(hosts, what, random);
  }

  /** Whatever could still come has come: each side has looked again, and nothing waits to be sent. */
  async function quiet(): Promise<void> {
    await runWell(hosts.node, 'reeve-deploy-action');
    await runWell(hosts.node, 'reeve-rsync-pull');
    await hosts.node.waitFor('an empty outbox', async () => {
      return (await hosts.node.sh(`ls -A ${state}/outbox`)) === '';
    });
    await runWell(hosts.control, 'reeve-action');
    await runWell(hosts.node, 'reeve-rsync-pull');
  }

  /** One that was under way may have met the last fault. */
  async function runWell(host: Host, unit: string): Promise<void> {
    await host.waitFor(`a good run of ${unit}`, async () => {
      return (await host.run(['systemctl', 'start', unit])).status === 0;
    });
  }

  function readAction(end: string, service: string): string {
    return readFileSync(hosts.control.outside(`${tree}/${end}/${idOf(service)}.json`), 'utf8');
  }

  function readHistory(end: string, service: string): unknown {
    const { transition_history: history } = JSON.parse(readAction(end, service));
    return history.map(({ to }: { to: string }) => to);
  }

  function wayTo(end: string): string[] {
    return ['approved', 'running', end];
  }

  function readWords(): Map<string, Set<string>> {
    const directory = hosts.control.outside('/opt/homelab/events/web-1');
    const words = new Map<string, Set<string>>();
    for (const name of readdirSync(directory).filter((one) => one.startsWith('evt-'))) {
      const { payload } = JSON.parse(readFileSync(`${directory}/${name}`, 'utf8'));
      words.set(payload.action_id, (words.get(payload.action_id) ?? new Set()).add(payload.status));
    }
    return words;
  }
});
