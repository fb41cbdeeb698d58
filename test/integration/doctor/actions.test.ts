// `reeve doctor` on nodes of actions and on control hosts: whole processes, real files, a real sshd's keys.
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type ActionsNode, makeActionsNode } from '../../support/actions-node.ts';
import { collectAfterAll } from '../../support/after-all.ts';
import { type ControlHost, makeControlHost } from '../../support/control-host.ts';
import type { ProgramEnd } from '../../support/programs.ts';
import { makePullingNode } from '../../support/pulling-node.ts';
import { type Sshd, startSshd } from '../../support/sshd.ts';

type Finding = { check: string; level: string; what: string; where?: string; fix?: string };

async function examine(
  machine: { reeve(...words: string[]): Promise<ProgramEnd> },
  name = 'actions',
): Promise<Finding[]> {
  const end = await machine.reeve('doctor', '--json');
  const { findings } = JSON.parse(end.stdout) as { findings: Finding[] };
  return findings.filter(({ check }) => check === name);
}

const told = (findings: readonly Finding[]): string[] =>
  findings.map(({ level, what }) => `${level}: ${what}`);

function makeNode(section: Readonly<Record<string, unknown>> = {}): ActionsNode {
  const node = makeActionsNode(section);
  for (const name of ['source', 'events']) mkdirSync(join(node.root, name));
  return node;
}

const eventName = (epochMs: number): string => `evt-vps-${epochMs}-action_result-redeploy-vps-web.json`;

describe('doctor on a node of actions', () => {
  it('has nothing to complain of before anything was done, and after a deploy', async () => {
    const node = makeNode();
    expect(told(await examine(node))).toEqual(['ok: node vps: 0 in the inbox, 0 running, 0 results to send']);
    node.put('web');
    expect((await node.reeve('deploy-action')).status).toBe(0);
    expect(told(await examine(node))).toEqual(['ok: node vps: 0 in the inbox, 0 running, 1 result to send']);
    expect(node.results(), 'and changes nothing').toHaveLength(1);
  });

  it('names what is missing: directories, services, the script, the user (D31)', async () => {
    const node = makeActionsNode({ user: 'nobody-of-that-name' });
    rmSync(join(node.root, 'checkout/hosts'), { recursive: true });
    chmodSync(join(node.root, 'checkout/scripts/deploy/deploy-service.sh'), 0o644);
    expect(told(await examine(node))).toEqual([
      'failure: actions.pull names a directory that is not there',
      'failure: actions.push names a directory that is not there',
      expect.stringMatching(/^failure: the node's services are not known: every action is rejected: /),
      'failure: the deploy script cannot be run: every deploy fails',
      'failure: cannot run anything as "nobody-of-that-name": the machine has no such user',
    ]);
    rmSync(join(node.root, 'checkout'), { recursive: true });
    expect((await examine(node)).map(({ what }) => what)).toContain(
      'there is no checkout: every action is rejected',
    );
  });

  it('tells of results that are not sent (D43), of quarantine, and of an action that nobody ends (D38)', async () => {
    const node = makeNode();
    mkdirSync(node.places.outbox);
    writeFileSync(join(node.places.outbox, eventName(Date.now() - 3_600_000)), '{}\n');
    writeFileSync(join(node.places.inbox, 'README'), 'no action');
    expect((await node.reeve('deploy-action')).status).toBe(1);
    const key = `redeploy-vps-web-${'0'.repeat(64)}`;
    const startedAt = new Date(Date.now() - 86_400_000).toISOString();
    const marker = {
      ...{ version: 1, actionId: 'redeploy-vps-web', key, actionType: 'redeploy', run: 'run-1' },
      state: { kind: 'started', startedAt },
    };
    mkdirSync(node.places.markers, { recursive: true });
    writeFileSync(join(node.places.markers, `${key}.json`), JSON.stringify(marker));
    writeFileSync(join(node.places.markers, `${key}.open`), '');
    expect(told(await examine(node))).toEqual([
      'failure: 1 action running past its time, which is 10m',
      expect.stringMatching(/^failure: 1 result not sent, the oldest for 1h/),
      'warning: 1 refused, and kept in quarantine for people',
    ]);
    expect(node.markers(), 'and settles nothing').toEqual(['redeploy-vps-web started']);
  });

  it('expects runs of its concerns, and says how to have one', async () => {
    const node = makeNode();
    expect(told(await examine(node, 'runs'))).toEqual([
      'warning: rsync-pull has had no good run yet, and one is due every 2m',
      'warning: deploy-action has had no good run yet, and one is due every 5m',
    ]);
    expect((await node.reeve('rsync-pull')).status).toBe(0);
    expect((await node.reeve('deploy-action')).status).toBe(0);
    expect(told(await examine(node, 'runs'))).toEqual(['ok: 2 concerns in order']);
  });
});

describe('doctor about the way over ssh', () => {
  const whenAllDone = collectAfterAll();
  let sshd: Sshd;
  beforeAll(async () => {
    sshd = await startSshd(whenAllDone);
  });

  it('looks at keys and known hosts, and tells of strays at the source', async () => {
    const node = makePullingNode(sshd);
    node.write('checkout/hosts/web-1/services.yaml', '[blog]\n');
    const actions = { node: 'web-1', pull: node.far.pull, push: node.far.push };
    node.write('etc/reeve.yaml', { actions: { ...actions, checkout: join(node.root, 'checkout') } });
    writeFileSync(join(node.far.deploy, 'README'), 'no action');
    await node.pull();
    expect(await examine(node)).toMatchObject([
      { level: 'warning', what: '1 at the source left alone: they are no actions', where: '"README"' },
    ]);
    rmSync(join(node.far.deploy, 'README'));
    await node.pull();
    expect(told(await examine(node))).toEqual([
      'ok: node web-1: 0 in the inbox, 0 running, 0 results to send',
    ]);
    chmodSync(join(node.root, 'etc/ssh/pull'), 0o644);
    rmSync(join(node.root, 'etc/ssh/push'));
    writeFileSync(join(node.root, 'etc/ssh/known_hosts'), '# nobody\n');
    expect(told(await examine(node))).toEqual([
      'failure: a private key can be read by others, so that ssh refuses it',
      'failure: there is no key to push with',
      'failure: no control host is known: ssh talks to nobody',
    ]);
  });
});

describe('doctor on a control host', () => {
  const examineTree = async (host: ControlHost): Promise<string[]> => told(await examine(host));

  it('counts what is open, and looks at who may write where', async () => {
    const host = makeControlHost();
    host.propose();
    expect(await examineTree(host)).toEqual(['ok: control host: 1 pending, 0 approved, 0 running']);
    chmodSync(join(host.root, 'approved'), 0o777);
    rmSync(join(host.dir, 'homelab/events'), { recursive: true });
    expect(await examineTree(host)).toEqual([
      'failure: anybody on this machine may propose and approve there',
      'warning: nodes have nowhere to report to: every redeploy will have failed',
    ]);
    rmSync(host.root, { recursive: true });
    expect(await examineTree(host)).toEqual([
      'failure: there is no such directory, which actions.root names',
    ]);
  });

  it('tells of a redeploy that nobody ends (D41), and how to end it', async () => {
    const host = makeControlHost();
    const id = host.propose();
    await host.reeve('action', 'approve', id, '--yes');
    await host.reeve('action', 'dispatch');
    host.age(id, 2_000);
    expect(await examine(host)).toMatchObject([
      { level: 'failure', what: '1 action running past its time, which is 15m', where: `${id} on web-1` },
    ]);
    expect(await examine(host, 'runs')).toMatchObject([{ level: 'ok' }]);
    const run = join(host.dir, 'state/runs/action.json');
    rmSync(run);
    expect(await examine(host, 'runs')).toMatchObject([
      { level: 'warning', fix: '`reeve action dispatch --settle`, or install the units' },
    ]);
  });
});
