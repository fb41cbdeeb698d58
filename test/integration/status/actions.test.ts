// What `status` says of actions, on a node of theirs and on a control host.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { nameProcess, readStartTime } from '../../../src/lib/host/processes.ts';
import { makeActionsNode } from '../../support/actions-node.ts';
import { onTestFinished } from '../../support/after-test.ts';
import { until } from '../../support/balanced.ts';
import { anAction, makeControlHost } from '../../support/control-host.ts';
import { makeMachine } from '../../support/machine.ts';

const first = (stdout: string, count: number): string[] => stdout.split('\n').slice(0, count);

it('tells what waits, what ended last, and what was refused (D43, D45)', async () => {
  const node = makeActionsNode();
  const empty = await node.reeve('status');
  expect([empty.status, first(empty.stdout, 3)]).toEqual([
    0,
    [
      'actions of node vps: 0 in the inbox, 0 running, 0 to send',
      'last action: none that is known',
      'no concern has run yet',
    ],
  ]);
  node.writeScript('exit 4');
  node.put('web');
  writeFileSync(join(node.places.inbox, 'README'), 'no action');
  await node.reeve('deploy-action');
  node.put('db');
  const shown = await node.reeve('status');
  expect(first(shown.stdout, 2)).toEqual([
    expect.stringMatching(
      /^actions of node vps: 1 in the inbox, 0 running, 1 to send, the oldest from .+ ago, 1 quarantined$/,
    ),
    expect.stringMatching(/^last action: redeploy-vps-web failed .+ ago: exit status 4 \(verify\)$/),
  ]);
  const json = JSON.parse((await node.reeve('status', '--json')).stdout);
  expect(json.actions).toMatchObject({
    node: {
      ...{ name: 'vps', inbox: 1, running: [], lost: [], outbox: 1, untold: [], damaged: [], quarantined: 1 },
      last: { actionId: 'redeploy-vps-web', service: 'web', outcome: 'failed' },
    },
    control: null,
  });
  expect(node.inbox(), 'and changes nothing').toEqual(['redeploy-vps-db.json']);
});

it('tells what is running, for how long, and which marker nobody can read', async () => {
  const node = makeActionsNode();
  mkdirSync(node.places.markers, { recursive: true });
  const write = (service: string, content: object | string): void => {
    const key = `redeploy-vps-${service}-${'0'.repeat(64)}`;
    const text = typeof content === 'string' ? content : JSON.stringify({ ...content, key });
    writeFileSync(join(node.places.markers, `${key}.json`), text);
    writeFileSync(join(node.places.markers, `${key}.open`), '');
  };
  const startedAt = new Date(Date.now() - 120_000).toISOString();
  const about = { version: 1, actionId: 'redeploy-vps-web', actionType: 'redeploy', run: 'run-1' };
  const group = nameProcess(process.pid, 'this boot');
  node.write('run/boot', 'this boot\n');
  const started = (more: object): object => ({ ...about, state: { kind: 'started', startedAt, ...more } });
  write('web', { ...started({ group }), service: 'web' });
  write('left', { ...started({}), actionId: 'redeploy-vps-left' });
  const before = { group: { ...group, bootId: 'another boot' } };
  write('booted', { ...started(before), actionId: 'redeploy-vps-booted' });
  write('db', '{');
  write('queue', { ...about, version: 9 });
  const key = `redeploy-vps-shop-${'0'.repeat(64)}`;
  mkdirSync(join(node.places.markers, `${key}.json`));
  writeFileSync(join(node.places.markers, `${key}.open`), '');
  const { stdout } = await node.reeve('status');
  expect(first(stdout, 6)).toEqual([
    'actions of node vps: 0 in the inbox, 1 running, 0 to send',
    expect.stringMatching(/^action redeploy-vps-web: running for 2m/),
    'actions whose process is gone: redeploy-vps-booted, redeploy-vps-left',
    'actions whose marker is damaged: redeploy-vps-db',
    'actions whose marker cannot be read: redeploy-vps-shop',
    'actions whose marker is of a later reeve: redeploy-vps-queue',
  ]);
});

it('calls running what somebody is at, and nothing else', async () => {
  const node = makeActionsNode();
  node.writeScript('echo $$ > $ROOT/pid.new; mv $ROOT/pid.new $ROOT/pid; exec sleep 300');
  node.put('web');
  const runner = node.start('deploy-action');
  // It is named once it runs.
  const isNamed = (): boolean =>
    readdirSync(node.places.markers)
      .filter((name) => name.endsWith('.json'))
      .some((name) => readFileSync(join(node.places.markers, name), 'utf8').includes('"group"'));
  await until(() => existsSync(join(node.root, 'pid')) && isNamed());
  const group = Number(readFileSync(join(node.root, 'pid'), 'utf8'));
  onTestFinished(() => {
    try {
      process.kill(-group, 'SIGKILL');
    } catch {
      // It was ended.
    }
  });
  const running = ['action redeploy-vps-web: running'];
  const gone = ['actions whose process is gone: redeploy-vps-web'];
  const tell = async (): Promise<string[]> =>
    first((await node.reeve('status')).stdout, 2)
      .slice(1)
      .map((line) => line.replace(/ for .*/, ''));
  expect(await tell()).toEqual(running);
  process.kill(runner.pid, 'SIGKILL');
  await runner.ended;
  expect(await tell(), 'the script goes on').toEqual(running);
  process.kill(-group, 'SIGKILL');
  await until(() => readStartTime(group) === undefined);
  expect(await tell()).toEqual(gone);
  const { stdout } = await node.reeve('status', '--json');
  expect(JSON.parse(stdout).actions.node).toMatchObject({ running: [], lost: ['redeploy-vps-web'] });
  expect((await node.reeve('deploy-action')).stdout, 'and of no replay').toBe(
    'redeploy-vps-web: unknown, interrupted: the process that ran it is gone\n',
  );
  expect(node.inbox()).toEqual([]);
  expect(await tell()).toEqual([expect.stringMatching(/^last action: redeploy-vps-web unknown /)]);
});

it.each(['inbox', 'outbox', 'quarantine', 'markers'] as const)(
  'tells of all the rest where %s cannot be looked at',
  async (name) => {
    const node = makeActionsNode();
    await node.reeve('deploy-action');
    rmSync(node.places[name], { recursive: true, force: true });
    writeFileSync(node.places[name], 'no directory');
    const shown = await node.reeve('status');
    expect([shown.status, shown.stderr]).toEqual([0, '']);
    expect(first(shown.stdout, 2)).toEqual([
      `actions of node vps: cannot read "${node.places[name]}": ENOTDIR: not a directory`,
      expect.stringMatching(/^CONCERN /),
    ]);
    const json = JSON.parse((await node.reeve('status', '--json')).stdout);
    expect(json.actions.node).toEqual({ name: 'vps', error: expect.stringContaining('ENOTDIR') });
  },
);

it('counts what is open on a control host, and tells of a tree that is gone', async () => {
  const host = makeControlHost();
  const id = host.propose();
  host.propose({ action_id: 'redeploy-web-1-shop', service: 'shop' });
  await host.reeve('action', 'approve', id, '--yes');
  await host.reeve('action', 'dispatch');
  const line = 'control host of actions: 1 pending, 0 approved, 1 running';
  expect(first((await host.reeve('status')).stdout, 1)).toEqual([line]);
  host.age(id, 1_000);
  expect(first((await host.reeve('status')).stdout, 2)).toEqual([
    line,
    `actions running past their time: ${id}`,
  ]);
  const json = (await host.reeve('status', '--json')).json();
  expect(json.actions).toEqual({
    node: null,
    control: { root: host.root, pending: 1, approved: 0, running: 1, late: [id], last: null },
  });
  rmSync(host.root, { recursive: true });
  expect(first((await host.reeve('status')).stdout, 1)).toEqual([
    `control host of actions: there is no directory ${host.root}, which actions.root names`,
  ]);
});

it('D11 tells what ended last on a control host, whoever has ended it', async () => {
  const host = makeControlHost();
  const last = async (): Promise<string | undefined> => (await host.reeve('status')).stdout.split('\n')[1];
  const id = host.propose();
  await host.reeve('action', 'approve', id, '--yes');
  await host.reeve('action', 'dispatch');
  host.age(id, 1_000);
  await host.reeve('action', 'settle');
  const silent = 'node web-1 has reported nothing for 15m';
  expect(await last()).toMatch(new RegExp(`^last ended: ${id} failed .+ ago: ${silent}$`));
  host.propose({ action_id: 'other' });
  await host.reeve('action', 'reject', 'other', '--yes');
  expect(await last()).toMatch(/^last ended: other rejected .+ ago: by operator-ann$/);
  expect((await host.reeve('status', '--json')).json().actions.control.last).toMatchObject({
    ...{ id: 'other', state: 'rejected', by: 'operator-ann', reason: null },
  });
  // Others move a file, and write nothing into it.
  const from = host.write('homelab/actions/running/moved.json', { ...anAction(), action_id: 'moved' });
  renameSync(from, join(host.root, 'completed/moved.json'));
  expect(await last()).toMatch(/^last ended: moved completed [\d.]+m?s ago$/);
  host.write('homelab/actions/cancelled/broken.json', '{');
  expect(await last()).toMatch(/^last ended: broken cancelled .+ ago$/);
  for (let count = 0; count < 2_001; count += 1) writeFileSync(join(host.root, `failed/a-${count}.json`), '');
  expect(await last()).toMatch(/^(no concern|CONCERN)/);
});

it('says nothing of actions where the configuration has none', async () => {
  const status = await makeMachine().reeve('status', '--json');
  expect(JSON.parse(status.stdout)).not.toHaveProperty('actions');
});
