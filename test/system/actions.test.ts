// Approved redeploys between two booted machines: a person approves on the control host, and nobody types on the node.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readSlowness } from '../support/machine-speed.ts';
import { describeHost, tellFigure, whenIdle } from '../support/system.ts';
import { checkout, startTwoHosts, type TwoHosts } from '../support/two-hosts.ts';

/** Of a container that falls ill and stays so, whatever is done but making it anew. */
const sickness = '/tmp/ill';
const healthTest = (test: string): string =>
  `{test: ["CMD", "sh", "-c", "${test}"], interval: 1s, retries: 1}`;
const blog = {
  lines: ['volumes: ["./data:/data"]', `healthcheck: ${healthTest(`test ! -e ${sickness}`)}`],
};
/** It is well as long as it sees the engine. */
const agent = {
  lines: [
    'volumes: ["/run/docker.sock:/run/docker.sock"]',
    `healthcheck: ${healthTest('test -S /run/docker.sock')}`,
  ],
};
/** What restarts all of reeve but the very service that waits for it. */
const ownUnits = [
  ...['reeve.target', 'reeve-actions.target', 'reeve-deploy-action.path', 'reeve-deploy-action.timer'],
  ...['reeve-rsync-pull.path', 'reeve-rsync-pull.timer', 'reeve-rsync-pull.service'],
];
const restart = `#!/bin/sh\nsystemctl daemon-reload && systemctl restart ${ownUnits.join(' ')}\n`;
const suicide = '#!/bin/sh\nsystemctl restart --no-block reeve-deploy-action.service; sleep 20\n';

const tree = '/opt/homelab/actions';
const state = '/var/lib/reeve/actions';

describeHost('two machines with actions', () => {
  let hosts: TwoHosts;
  const tookS: number[] = [];
  beforeAll(async () => {
    hosts = await startTwoHosts();
    await hosts.addService('blog', blog);
    await hosts.addService('node-agent', agent);
    await hosts.addService('toolkit', { healthcheck: restart });
    await hosts.addService('toolkit-self', { healthcheck: suicide });
  }, 300_000);
  afterAll(() => hosts?.stop());

  /** From the approval to the end, with nobody typing on the node. */
  async function redeploy(service: string): Promise<string> {
    const id = await hosts.propose(service);
    // The last one has ended with a look of the node: without this each would wait for nearly a whole interval of its timer.
    await sleep(tookS.length * 1_500);
    const startedAtMs = performance.now();
    await hosts.approve(id);
    const end = await hosts.settled(id);
    tookS.push((performance.now() - startedAtMs) / 1000);
    return end;
  }

  async function health(service: string, wanted: string): Promise<void> {
    await hosts.node.waitFor(`${service} to be ${wanted}`, async () => {
      return (await hosts.container(service)).health === wanted;
    });
  }

  it('recreate an unhealthy container with unchanged config, as a deploy by hand has it (D1, D11, D12, D13, D14, D27)', async () => {
    const byHand = await hosts.container('blog');
    expect(byHand.same).toMatchObject({ project: 'blog', mounts: [`${checkout}/services/blog/data:/data`] });
    await hosts.node.output(['docker', 'exec', byHand.id, 'touch', sickness]);
    await health('blog', 'unhealthy');
    expect((await hosts.container('blog')).id).toBe(byHand.id);
    expect(await redeploy('blog')).toBe('completed');
    const after = await hosts.container('blog');
    expect(after.id).not.toBe(byHand.id);
    expect({ health: after.health, same: after.same }).toEqual({ health: 'healthy', same: byHand.same });
    const { transition_history: history } = await hosts.read('redeploy-web-1-blog');
    expect(history.map(({ to }) => to)).toEqual(['approved', 'running', 'completed']);
  }, 120_000);

  it('run what is approved again, and never the same approval twice (D36, D42)', async () => {
    const first = await hosts.container('blog');
    const { control, node } = hosts;
    // Nobody takes it on before it has been copied.
    await control.output(['systemctl', 'stop', 'reeve-action.path', 'reeve-action.timer']);
    await whenIdle(control, 'reeve-action.service');
    const id = await hosts.propose('blog');
    await hosts.approve(id);
    await control.sh(`cp -p ${tree}/approved/${id}.json /root/approval.json`);
    await control.output(['systemctl', 'start', 'reeve-action.path', 'reeve-action.timer']);
    expect(await hosts.settled(id)).toBe('completed');
    const again = await hosts.container('blog');
    expect(again.id).not.toBe(first.id);

    // The very same bytes once more, where the node fetches them, as a restored backup has them.
    const events = await control.sh('ls /opt/homelab/events/web-1');
    const since = await node.sh('date +%s.%N');
    await control.sh(
      `cp -p /root/approval.json ${tree}/.new; mv ${tree}/.new ${tree}/deploy/web-1/${id}.json`,
    );
    await node.waitFor(
      'them to be in the mirror',
      async () => await node.exists(`${state}/staging/${id}.json`),
    );
    expect(await node.read(`${state}/staging/${id}.json`)).toBe(await control.read('/root/approval.json'));
    // A pull has seen them, and has handed nothing over. In the inbox all the same, they are put aside.
    await node.sh(`
      systemctl start reeve-rsync-pull
      [ -z "$(ls -A ${state}/inbox)" ]
      install -m 0600 ${state}/staging/${id}.json ${state}/.new; mv ${state}/.new ${state}/inbox/${id}.json
      touch /run/reeve/wake/deploy-action
    `);
    await node.waitFor('an empty inbox', async () => (await node.sh(`ls -A ${state}/inbox`)) === '');
    const journal = await node.waitFor('the journal to tell of it', async () => {
      const entries = await node.journal('-u', 'reeve-deploy-action', `--since=@${since.trim()}`);
      const said = `${id}: this approval was handled before: succeeded`;
      return entries.some(({ message }) => message.includes(said)) && entries;
    });
    expect(journal.filter(({ message }) => message.includes('redeploying'))).toEqual([]);
    await control.sh(`rm ${tree}/deploy/web-1/${id}.json`);

    // And where the executor takes them from: it is told there that they have been carried out.
    await control.sh(`
      cp -p /root/approval.json ${tree}/.new; mv ${tree}/.new ${tree}/approved/${id}.json
      touch /run/reeve/wake/action
    `);
    // It says why a moment after it has moved.
    await control.waitFor('it to be rejected', async () =>
      (await control.read(`${tree}/rejected/${id}.json`)).includes('carried out before'),
    );
    expect(await control.sh(`ls -A ${tree}/approved ${tree}/running ${tree}/deploy/web-1`)).not.toContain(id);
    expect(await hosts.container('blog')).toEqual(again);
    expect(await control.sh('ls /opt/homelab/events/web-1')).toBe(events);
    await control.sh(`rm ${tree}/rejected/${id}.json`);

    // A later approval of the same id is another one.
    expect(await redeploy('blog')).toBe('completed');
    expect((await hosts.container('blog')).id).not.toBe(again.id);
  }, 240_000);

  it('redeploy what agents are made of, and others while an agent sees no engine (D17, D18)', async () => {
    const before = await hosts.container('node-agent');
    await health('node-agent', 'healthy');
    await hosts.node.sh(`
      pid=$(docker inspect -f '{{.State.Pid}}' ${before.id})
      nsenter -t "$pid" -m umount /run/docker.sock
    `);
    await health('node-agent', 'unhealthy');
    const blind = await hosts.container('blog');
    expect(await redeploy('blog')).toBe('completed');
    expect((await hosts.container('blog')).id).not.toBe(blind.id);
    expect(await hosts.container('node-agent')).toMatchObject({ id: before.id, health: 'unhealthy' });
    expect(await redeploy('node-agent')).toBe('completed');
    const after = await hosts.container('node-agent');
    expect(after.id).not.toBe(before.id);
    expect({ health: after.health, same: after.same }).toEqual({ health: 'healthy', same: before.same });
  }, 180_000);

  it('redeploy what restarts reeve’s own units, and go on after one that restarts the deploy itself (D17)', async () => {
    const starts = await invocations();
    expect(await redeploy('toolkit')).toBe('completed');
    const restarted = await invocations();
    // Each of them was started anew, and all are at work.
    for (const [unit, invocation] of Object.entries(starts))
      expect(restarted[unit], unit).not.toBe(invocation);
    const self = await hosts.propose('toolkit-self');
    await hosts.approve(self);
    expect(await hosts.settled(self)).toBe('failed');
    expect(JSON.stringify(await hosts.read(self))).toMatch(/interrupted/);
    expect(await redeploy('blog')).toBe('completed');
    expect(await hosts.node.output(['systemctl', '--failed', '--quiet', '--no-legend'])).toBe('');
  }, 240_000);

  async function invocations(): Promise<Record<string, string>> {
    const units = ownUnits.filter((unit) => !unit.endsWith('.service'));
    const entries = units.map(async (unit) => {
      const { InvocationID, ActiveState } = await hosts.node.show(unit, 'InvocationID', 'ActiveState');
      expect(ActiveState, unit).toBe('active');
      return [unit, InvocationID] as const;
    });
    return Object.fromEntries(await Promise.all(entries));
  }

  it('are done in less than 20 seconds from the approval on, as the wakes and the timers are shipped', async () => {
    const sorted = tookS.toSorted((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
    const all = sorted.map((seconds) => seconds.toFixed(1)).join(', ');
    tellFigure(`from an approval on the control host to its completion there: ${all} s`);
    expect(sorted.length).toBeGreaterThanOrEqual(5);
    expect(median).toBeLessThan(20 * (await readSlowness()));
  });
});
