// Approved redeploys between two booted machines: a person approves on the control host, and nobody types on the node.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createRandom, type Random } from '../support/random.ts';
import { describeHost, tellFigure } from '../support/system.ts';
import { checkout, startTwoHosts, type TwoHosts } from '../support/two-hosts.ts';

describeHost('two machines with actions', () => {
  let hosts: TwoHosts;
  beforeAll(async () => {
    hosts = await startTwoHosts();
  }, 300_000);
  afterAll(() => hosts?.stop());

  it('recreate a container with unchanged config, with nobody typing on the node (D1, D11, D27)', async () => {
    await hosts.addService('blog', ['volumes: ["./data:/data"]']);
    const before = await hosts.container('blog');
    const id = await hosts.propose('blog');
    const startedAtMs = performance.now();
    await hosts.approve(id);
    expect(await hosts.settled(id)).toBe('completed');
    const tookS = (performance.now() - startedAtMs) / 1000;
    tellFigure(`from an approval on the control host to its completion there: ${tookS.toFixed(1)} s`);
    const after = await hosts.container('blog');
    expect(after.id).not.toBe(before.id);
    // As a hand-run deploy has them (D13, D14).
    expect({ project: after.project, mounts: after.mounts }).toEqual({
      project: before.project,
      mounts: [`${checkout}/services/blog/data`],
    });
    expect((await hosts.read(id)).transition_history.map(({ to }) => to)).toEqual([
      'approved',
      'running',
      'completed',
    ]);
  }, 240_000);

  it('run what is approved again, and never the same approval twice (D36, D42)', async () => {
    const id = await hosts.propose('blog');
    await hosts.approve(id);
    expect(await hosts.settled(id)).toBe('completed');
    const again = await hosts.container('blog');
    // The control side gives the very same file once more, as a restored backup would.
    await hosts.control.sh(`
      cp -p /opt/homelab/actions/completed/${id}.json /tmp/same.json
      sed 's/"status":"completed"/"status":"approved"/' /tmp/same.json >/opt/homelab/actions/deploy/web-1/${id}.json
    `);
    await hosts.node.output(['reeve', 'rsync-pull', '--wait', '30']);
    await hosts.node.output(['reeve', 'deploy-action', '--wait', '30']);
    expect(await hosts.container('blog')).toEqual(again);
    await hosts.control.sh(`rm /opt/homelab/actions/deploy/web-1/${id}.json`);
  }, 240_000);

  it('redeploy what agents are made of, and what restarts reeve itself (D17, D18)', async () => {
    await hosts.addService('node-agent');
    const restart =
      '#!/bin/sh\nsystemctl daemon-reload && systemctl restart reeve.target reeve-rsync-pull.timer\n';
    await hosts.node.write(`${checkout}/services/node-agent/healthcheck.sh`, restart, '0755');
    const before = await hosts.container('node-agent');
    const id = await hosts.propose('node-agent');
    await hosts.approve(id);
    expect(await hosts.settled(id)).toBe('completed');
    expect((await hosts.container('node-agent')).id).not.toBe(before.id);
    expect((await hosts.node.show('reeve-rsync-pull.timer', 'ActiveState')).ActiveState).toBe('active');
  }, 240_000);

  it('end each of 100 actions once, with at most one deploy, whatever is killed or cut, an hour apart (D36, D43)', async () => {
    const services = Array.from({ length: 100 }, (_, index) => `s${index}`);
    await hosts.useTeller(services);
    await setNodeClock('+1h');
    const ids: string[] = [];
    for (const service of services) ids.push(await hosts.propose(service));
    const seed = Math.floor(Math.random() * 1_000_000);
    const random = createRandom(seed);
    const startedAtMs = performance.now();
    const faults = await approveUnderFaults(ids, random);
    const states = new Map<string, string>();
    for (const id of ids) states.set(id, await hosts.settled(id, 300_000));
    const tookS = Math.round((performance.now() - startedAtMs) / 1000);
    const told = await hosts.told();
    const completed = services.filter((service) => states.get(`redeploy-web-1-${service}`) === 'completed');
    const failed = services.length - completed.length;
    tellFigure(
      `100 actions under ${faults} faults (seed ${seed}): ${completed.length} completed, ${failed} failed, ${told.length} deploys, ${tookS} s`,
    );
    // No service was deployed twice, and none is called completed that was not.
    expect(told.length).toBe(new Set(told).size);
    expect(completed.filter((service) => !told.includes(service))).toEqual([]);
    // Each failure says why: the deploy was interrupted.
    for (const service of services.filter((one) => !completed.includes(one))) {
      expect(JSON.stringify(await hosts.read(`redeploy-web-1-${service}`))).toMatch(
        /unknown|interrupted|ended/,
      );
    }
    expect(await hosts.node.sh('ls -A /var/lib/reeve/actions/inbox')).toBe('');
    await hosts.node.waitFor('an empty outbox', async () => {
      return (await hosts.node.sh('ls -A /var/lib/reeve/actions/outbox')) === '';
    });
  }, 900_000);

  async function setNodeClock(offset: string): Promise<void> {
    for (const unit of ['reeve-rsync-pull', 'reeve-deploy-action']) {
      const lines = [
        '[Service]',
        'Environment=LD_PRELOAD=/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1',
        `Environment="FAKETIME=${offset}" FAKETIME_DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1`,
      ];
      await hosts.node.write(`/etc/systemd/system/${unit}.service.d/60-clock.conf`, `${lines.join('\n')}\n`);
    }
    await hosts.node.output(['systemctl', 'daemon-reload']);
  }

  /** Approves them all, a few at a time, and harms both ends meanwhile. Gives how often. */
  async function approveUnderFaults(ids: readonly string[], random: Random): Promise<number> {
    const batches = 10;
    for (let batch = 0; batch < batches; batch += 1) {
      const approving = approveAll(ids.slice(batch * 10, batch * 10 + 10));
      await harm(powerCuts.get(batch) ?? random.pick(harms), random);
      await approving;
    }
    // Whoever approves was at a machine that lost its power: the person looks, and asks again.
    await approveAll(ids);
    return batches;
  }

  const powerCuts: ReadonlyMap<number, 'power node' | 'power control'> = new Map([
    [4, 'power node'],
    [7, 'power control'],
  ]);

  async function approveAll(ids: readonly string[]): Promise<void> {
    const pending = '/opt/homelab/actions/pending';
    const script = ids.map(
      (id) => `[ ! -e ${pending}/${id}.json ] || reeve action approve --yes --wait 60 ${id}`,
    );
    await hosts.control.run(['sh', '-c', script.join('\n')]);
  }

  const harms = ['kill node', 'kill control', 'cut'] as const;

  async function harm(
    what: (typeof harms)[number] | 'power node' | 'power control',
    random: Random,
  ): Promise<void> {
    await sleep(random.below(4_000));
    switch (what) {
      case 'kill node':
        await hosts.node.run(['systemctl', 'kill', '-s', 'KILL', 'reeve-rsync-pull', 'reeve-deploy-action']);
        return;
      case 'kill control':
        await hosts.control.run(['systemctl', 'kill', '-s', 'KILL', 'reeve-action']);
        return;
      case 'cut':
        hosts.cutLink();
        await sleep(2_000 + random.below(5_000));
        hosts.healLink();
        return;
      case 'power node':
        await hosts.losePower('node');
        return;
      case 'power control':
        await hosts.losePower('control');
        return;
    }
  }
});
