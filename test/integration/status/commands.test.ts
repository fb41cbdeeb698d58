// What `status` says of commands, of the control plane, and of the instances that the proxy leads to.
import { expect, it } from 'vitest';
import { readStartTime } from '../../../src/lib/host/processes.ts';
import { makeCommandsMachine } from '../../support/agenda/machine.ts';
import { startBackendServer } from '../../support/backend-servers.ts';
import { makeMachine } from '../../support/machine.ts';
import { startProxy } from '../../support/proxy.ts';
import { openTunnel } from '../../support/proxy-client.ts';

const ago = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString();

it('tells how many commands run, wait, have ended and are damaged', async () => {
  const machine = await makeCommandsMachine();
  const empty = await machine.reeve('status');
  expect([empty.status, empty.stdout.split('\n').slice(0, 4)]).toEqual([
    0,
    [
      'commands of machine 7: 0 running, 0 waiting; kept: 0 succeeded, 0 failed',
      `control plane of commands: ${machine.central.url}, never told`,
      'proxy: 0 instances; HAProxy does not run',
      'no concern has run yet',
    ],
  ]);
  const bootId = 'boot-1';
  machine.write('run/boot', `${bootId}\n`);
  const request = { jobId: 'x', dir: '', env: ['SECRET=s3cret'], mode: 'shell', shell: 'true' };
  const runner = { pid: process.pid, startTime: readStartTime(process.pid) };
  const put = (jobId: string, state: object, boot = bootId): void => {
    const record = { version: 1, jobId, generation: 'g', acceptedAt: ago(600), bootId: boot, state };
    machine.write(`state/commands/${jobId}.json`, record);
  };
  put('waits', { kind: 'accepted', request });
  put('runs', { kind: 'running', request, startedAt: ago(60), runner });
  put('oldest', { kind: 'running', request, startedAt: ago(3_600), runner });
  put('killed', {
    kind: 'running',
    request,
    startedAt: ago(60),
    runner: { pid: process.pid, startTime: '1' },
  });
  put('rebooted', { kind: 'accepted', request }, 'another boot');
  put('good', { kind: 'success', startedAt: ago(60), endedAt: ago(50) });
  put('bad', { kind: 'failed', endedAt: ago(50), exitCode: 2, error: 'exit status 2' });
  machine.write('state/commands/damaged.json', '{');
  machine.write('state/commands/good.output', 'not looked at');
  const shown = await machine.reeve('status');
  expect(shown.stdout.split('\n').slice(0, 3)).toEqual([
    expect.stringMatching(
      /^commands of machine 7: 2 running, the oldest for 1h \(oldest\), 1 waiting; kept: 1 succeeded, 1 failed$/,
    ),
    'commands whose process is gone: killed, rebooted',
    'commands whose record is damaged: damaged',
  ]);
  const json = await machine.reeve('status', '--json');
  expect(`${shown.stdout}${json.stdout}`).not.toContain('s3cret');
  expect(JSON.parse(json.stdout).commands).toMatchObject({
    ...{ machineId: 7, waiting: 1, succeeded: 1, failed: 1 },
    ...{ lost: ['killed', 'rebooted'], damaged: ['damaged'] },
    running: [{ jobId: 'oldest' }, { jobId: 'runs' }],
  });
  expect(machine.read('state/commands/damaged.json'), 'and changes nothing').toBe('{');
  expect(machine.json('state/commands/killed.json')).toMatchObject({ state: { kind: 'running' } });
});

it('tells when the control plane was told last, and why not (A29, A31)', async () => {
  const machine = await makeCommandsMachine();
  const line = async (): Promise<string> => {
    const { stdout } = await machine.reeve('status');
    return stdout.split('\n').find((one) => one.startsWith('control plane')) ?? '';
  };
  await machine.reeve('heartbeat');
  expect(await line()).toMatch(/^control plane of commands: http:\/\/127.0.0.1:\d+, told [\d.]+m?s ago$/);
  const beats = machine.json('state/backoff/commands.json') as { lastTriedAt: string };
  machine.write('state/backoff/commands.json', { ...beats, nextAt: beats.lastTriedAt });
  machine.central.faults.push({ kind: 'answer', status: 503, text: 'not now' });
  await machine.reeve('heartbeat');
  expect(await line()).toMatch(
    /, last told [\d.]+m?s ago; since then: cannot send the heartbeat of commands: the control plane answered 503: not now$/,
  );
});

it('tells nothing of another control plane than the one that is named now, nor waits for its next beat', async () => {
  const machine = await makeCommandsMachine();
  await machine.reeve('heartbeat');
  const other = await makeCommandsMachine({ central: { machines: { 7: 'another' } } });
  const config = machine.json('etc/reeve.yaml') as { commands: object };
  const commands = { ...config.commands, central_base_url: other.central.url };
  machine.write('etc/reeve.yaml', { commands });
  const line = async (): Promise<string | undefined> =>
    (await machine.reeve('status')).stdout.split('\n').find((one) => one.startsWith('control plane'));
  expect(await line()).toBe(`control plane of commands: ${other.central.url}, never told`);
  await machine.reeve('heartbeat');
  expect(await line()).toBe(
    `control plane of commands: ${other.central.url}, never told: cannot send the heartbeat of commands: the control plane answered 401: invalid node token`,
  );
});

it('tells of instances and active tunnels (A66)', async () => {
  const machine = await makeCommandsMachine({ commands: { central_base_url: '' } });
  const [proxy, instance] = [await startProxy(), await startBackendServer('it')];
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
  for (const name of names) await proxy.set(name, instance.backend.port);
  await openTunnel(proxy.port, '/i/a/ws');
  const env = { REEVE_RUN: proxy.paths.runDir };
  const { stdout } = await machine.start(['status'], env).ended;
  const { port } = instance.backend;
  const shown = names.slice(0, 5).map((name) => `${name}:${port}`);
  expect(stdout.split('\n').slice(1, 3)).toEqual([
    'control plane of commands: none (commands.central_base_url)',
    `proxy: 7 instances (${shown.join(', ')}, 2 more); active tunnels: 1`,
  ]);
  await proxy.reload();
  const { stdout: after } = await machine.start(['status'], env).ended;
  expect(after.split('\n')[2]).toMatch(/; active tunnels: 1, in 2 workers$/);
  const json = await machine.start(['status', '--json'], env).ended;
  expect(JSON.parse(json.stdout).commands.proxy).toEqual({
    instances: names.map((name) => ({ instance: name, port })),
    ...{ draining: false, running: true, activeTunnels: 1, workers: 2 },
  });
});

it('tells of a drain while HAProxy runs, and of none that a start ends (A67)', async () => {
  const machine = await makeCommandsMachine();
  const proxy = await startProxy();
  const env = { REEVE_RUN: proxy.paths.runDir };
  const lineOfProxy = async (): Promise<string> =>
    (await machine.start(['status'], env).ended).stdout.split('\n')[2] ?? '';
  await machine.start(['proxy', 'drain'], env).ended;
  expect(await lineOfProxy()).toBe('proxy: 0 instances; active tunnels: 0; new ones are refused (drain)');
  await proxy.stop();
  expect(await lineOfProxy()).toBe('proxy: 0 instances; HAProxy does not run');
  const json = JSON.parse((await machine.start(['status', '--json'], env).ended).stdout);
  expect(json.commands.proxy).toMatchObject({ draining: false, running: false });
});

it('says nothing of commands where the configuration has none', async () => {
  const status = await makeMachine().reeve('status', '--json');
  expect(JSON.parse(status.stdout)).not.toHaveProperty('commands');
});
