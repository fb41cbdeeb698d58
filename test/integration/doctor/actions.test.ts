// `reeve doctor` on nodes of actions and on control hosts: whole processes, real files, a real sshd's keys.

import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { type ActionsNode, makeActionsNode } from '../../support/actions-node.ts';
import { collectAfterAll } from '../../support/after-all.ts';
import { type ControlHost, makeControlHost } from '../../support/control-host.ts';
import { fakeClock } from '../../support/faked-clock.ts';
import { type ProgramEnd, startProcess } from '../../support/programs.ts';
import { makePullingNode } from '../../support/pulling-node.ts';
import { type Sshd, startSshd } from '../../support/sshd.ts';

type Finding = { check: string; level: string; what: string; where?: string; fix?: string };

async function examine(
  machine: { reeve(...words: string[]): Promise<ProgramEnd> },
  name = 'actions',
): Promise<Finding[]> {
  const end = await machine.reeve('doctor', '--json');
  return pick(end.stdout, name);
}

/** On a clock that was set by so much; that of the files is the kernel's. */
async function later(node: ActionsNode, offset: string): Promise<Finding[]> {
  const env = { ...node.env, ...fakeClock(offset) };
  return pick((await startProcess(inject('reeveBin'), ['doctor', '--json'], env).ended).stdout, 'actions');
}

function pick(stdout: string, name: string): Finding[] {
  const { findings } = JSON.parse(stdout) as { findings: Finding[] };
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
      "failure: the node's services are not known: every action is rejected: ENOENT: no such file or directory",
      'failure: the deploy script cannot be run: every deploy fails',
      'failure: cannot run anything as "nobody-of-that-name": the machine has no such user',
    ]);
    rmSync(join(node.root, 'checkout'), { recursive: true });
    expect((await examine(node)).map(({ what }) => what)).toContain(
      'there is no checkout: every action is rejected',
    );
  });

  it('says nothing of what a broken configuration leaves open, but that it is', async () => {
    const node = makeActionsNode({ push: undefined, checkout: undefined });
    expect(told(await examine(node))).toEqual([
      'skipped: the configuration says nothing of use for actions.push, actions.checkout',
    ]);
    expect(told(await examine(node, 'config'))).toEqual([
      expect.stringMatching(/^failure: .*: actions.push is missing$/),
      expect.stringMatching(/^failure: .*: actions.checkout is missing$/),
    ]);
  });

  it('tells of quarantine, and of an action that nobody ends (D38)', async () => {
    const node = makeNode();
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
      'failure: 1 action begun, and the process is gone',
      'warning: 1 refused, and kept in quarantine for people',
    ]);
    expect(node.markers(), 'and settles nothing').toEqual(['redeploy-vps-web started']);
  });

  it('tells of results that are not sent by how long they are there, whatever their names say (D43)', async () => {
    const node = makeNode();
    mkdirSync(node.places.outbox);
    writeFileSync(join(node.places.outbox, eventName(Date.parse('2099-01-01'))), '{}\n');
    expect(told(await examine(node))).toEqual(['ok: node vps: 0 in the inbox, 0 running, 1 result to send']);
    expect(told(await later(node, '+1h'))).toEqual([
      expect.stringMatching(/^failure: 1 result not sent, the oldest for 1h/),
    ]);
  });

  it('tells of a marker that was announced and never made, once runs should have cleared that away', async () => {
    const node = makeNode();
    mkdirSync(node.places.markers, { recursive: true });
    writeFileSync(join(node.places.markers, `redeploy-vps-web-${'0'.repeat(64)}.open`), '');
    expect(told(await examine(node))).toEqual(['ok: node vps: 0 in the inbox, 0 running, 0 results to send']);
    expect(told(await later(node, '+49h'))).toEqual([
      'warning: the markers of 1 action were announced and never made',
    ]);
  });

  it('names services whose redeploys could have no id, on a node that has one for others', async () => {
    const node = makeNode();
    const [longest, long] = [51, 52].map((length) => 's'.repeat(length));
    node.write('checkout/hosts/vps/services.yaml', `[web, ${longest}, ${long}, my_app]\n`);
    expect(await examine(node)).toMatchObject([
      {
        level: 'warning',
        what: '2 services can have no redeploy: their names fit into no id',
        where: `${long}, my_app`,
      },
    ]);
  });

  it('is told of an rsync that is too old to send, and goes by the one that it would run', async () => {
    const node = makeNode();
    const script = "#!/bin/sh\necho 'rsync  version 3.2.3  protocol version 31'\n";
    const path = `${dirname(node.write('bin/rsync', script, 0o755))}:${process.env['PATH']}`;
    const { stdout } = await startProcess(inject('reeveBin'), ['doctor', '--json'], {
      ...node.env,
      PATH: path,
    }).ended;
    expect(told(pick(stdout, 'actions'))).toEqual(['failure: rsync 3.2.3 is too old: it sends no results']);
  });

  it('tells of all the rest where something cannot be looked at', async () => {
    const node = makeNode();
    node.write('state/actions/strays.json', '{"version":9}');
    rmSync(node.places.inbox, { recursive: true });
    writeFileSync(node.places.inbox, 'no directory');
    rmSync(join(node.root, 'events'), { recursive: true });
    expect(told(await examine(node))).toEqual([
      'failure: actions.push names a directory that is not there',
      expect.stringMatching(/^failure: what waits here cannot be looked at: .*inbox.*ENOTDIR/),
      expect.stringMatching(/^failure: what was left at the source is not known: .*strays.json/),
    ]);
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
    node.writeScript('echo no such image; exit 3');
    node.put('web');
    expect((await node.reeve('deploy-action')).status).toBe(1);
    expect(await examine(node, 'runs')).toMatchObject([
      { what: 'the last run of deploy-action ended with 1', fix: '`reeve history` says why' },
    ]);
    expect((await node.reeve('history')).stdout).toContain('exit status 3 (execute): no such image');
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

  it('tells of links in the tree, which nothing follows', async () => {
    const host = makeControlHost();
    const target = join(host.dir, 'elsewhere');
    mkdirSync(target);
    const isLink = 'failure: a symbolic link, and none is followed there';
    mkdirSync(join(host.root, 'deploy'));
    symlinkSync(target, join(host.root, 'deploy/web-1'));
    expect(await examineTree(host)).toEqual([isLink]);
    rmSync(join(host.root, 'approved'), { recursive: true });
    symlinkSync(target, join(host.root, 'approved'));
    symlinkSync('nowhere', join(host.root, 'unknown'));
    expect(await examineTree(host), 'and counts nothing').toEqual([isLink, isLink]);
    renameSync(host.root, `${host.root}.real`);
    symlinkSync('actions.real', host.root);
    expect(await examineTree(host)).toEqual([isLink]);
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
