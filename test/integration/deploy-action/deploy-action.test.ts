// `reeve deploy-action` as a process: what it runs, what it refuses, and what it tells of both.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readStartTime } from '../../../src/lib/host/processes.ts';
import { makeActionsNode, readPid } from '../../support/actions-node.ts';
import { until } from '../../support/balanced.ts';

const isAlive = (pid: number): boolean => readStartTime(pid) !== undefined;

const approvedAgain = (timestamp: number) => ({
  transition_history: [{ from: 'pending', to: 'approved', timestamp, by: 'operator-tg-7' }],
});

describe('an approved redeploy', () => {
  it('runs the deploy script with the service’s name alone, and is told (D8, D9, D26, D34, D35)', async () => {
    const node = makeActionsNode();
    node.writeScript('pwd > $ROOT/pwd; env > $ROOT/env; echo out; echo err >&2');
    const hostile = { command: 'touch /tmp/x', args: ['--build'], image: 'evil', env: { LD_PRELOAD: '/x' } };
    node.put('web', { ...hostile, details: { reason: '$(id)', script: '/tmp/x' } });
    const { status, stdout } = await node.reeve('deploy-action', '--json');
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      ...{ version: 1, command: 'deploy-action', outcome: 'done' },
      actions: [{ actionId: 'redeploy-vps-web', service: 'web', outcome: 'succeeded', exitCode: 0 }],
    });
    expect(readFileSync(join(node.root, 'ran'), 'utf8')).toBe('--force-recreate web\n');
    expect(readFileSync(join(node.root, 'pwd'), 'utf8')).toBe(`${node.root}/checkout\n`);
    const env = readFileSync(join(node.root, 'env'), 'utf8');
    expect(env).toContain(`REEVE_NODE=vps\n`);
    expect(env).toContain(`REEVE_CHECKOUT=${node.root}/checkout\n`);
    expect(env).toContain(`REEVE_HOMELAB_CONFIG=/opt/homelab/config\n`);
    expect(env).toContain(`DEPLOY_VERIFY_SECS=120\n`);
    expect(env).not.toMatch(/LD_PRELOAD|REEVE_STATE|REEVE_CONFIG|evil/);
    expect(node.results()).toEqual([
      {
        ...{ node: 'vps', actionId: 'redeploy-vps-web', actionType: 'redeploy', service: 'web' },
        ...{ status: 'completed', exitCode: 0, outputTail: 'out\nerr\n' },
        key: expect.stringMatching(/^redeploy-vps-web-[0-9a-f]{64}$/),
        startedAt: expect.any(String),
        finishedAt: expect.any(String),
      },
    ]);
    expect([node.inbox(), node.quarantine(), node.markers()]).toEqual([
      ...[[], [], ['redeploy-vps-web reported succeeded']],
    ]);
    // The result leaves at once.
    expect(readdirSync(join(node.root, 'run/wake'))).toEqual(['rsync-pull']);
    const history = readFileSync(join(node.root, 'state/history.ndjson'), 'utf8');
    expect(history).toContain('redeploy-vps-web: approved by operator-tg-7');
  });

  it('has the machine’s own files and its time to run well from the configuration (D38)', async () => {
    const node = makeActionsNode({ config: '/srv/config', verify_timeout: '4m30s' });
    node.writeScript('echo "$REEVE_HOMELAB_CONFIG $DEPLOY_VERIFY_SECS"');
    node.put('web');
    expect((await node.reeve('deploy-action')).status).toBe(0);
    expect(node.results()).toMatchObject([{ outputTail: '/srv/config 270\n' }]);
  });

  it('is never run again by the same approval, and is by a later one of the same id (D36, D42)', async () => {
    const node = makeActionsNode();
    node.put('web');
    await node.reeve('deploy-action');
    node.put('web');
    expect((await node.reeve('deploy-action')).stdout).toMatch(/this approval was handled before: succeeded/);
    node.put('web', { status: 'running', updated_at: 1_785_799_999, details: { reason: 'other' } });
    await node.reeve('deploy-action');
    expect([node.ran(), node.results().length, node.inbox()]).toEqual([['web'], 1, []]);
    node.put('web', approvedAgain(1_785_800_000));
    await node.reeve('deploy-action');
    expect([node.ran(), node.results().length, node.inbox()]).toEqual([['web', 'web'], 2, []]);
    expect(new Set(node.results().map(({ key }) => key)).size).toBe(2);
    node.put('web');
    await node.reeve('deploy-action');
    expect(node.ran()).toEqual(['web', 'web']);
  });

  it('without a history is run once for each content (D42)', async () => {
    const node = makeActionsNode();
    for (const updated of [1, 1, 2]) {
      node.put('web', { transition_history: undefined, updated_at: updated });
      await node.reeve('deploy-action');
    }
    expect(node.ran()).toEqual(['web', 'web']);
  });

  it.each([
    [1, 'exit status 1 (preflight): no such image'],
    [4, 'exit status 4 (verify): no such image'],
    [77, 'exit status 77: no such image'],
  ])('whose script ends with %i has failed, and is told', async (code, reason) => {
    const node = makeActionsNode();
    node.writeScript(`echo no such image; exit ${code}`);
    node.put('web');
    const { status, stdout, stderr } = await node.reeve('deploy-action');
    expect([status, stdout]).toEqual([1, `redeploy-vps-web: failed, ${reason}\n`]);
    expect(stderr).toContain('redeploy-vps-web says: no such image\n');
    expect(node.results()).toMatchObject([
      { status: 'failed', exitCode: code, reason, outputTail: 'no such image\n' },
    ]);
    expect([node.inbox(), node.markers()]).toEqual([[], ['redeploy-vps-web reported failed']]);
    expect((await node.reeve('deploy-action')).status).toBe(0);
    expect(node.ran()).toEqual(['web']);
  });

  it('whose script is not there has failed, and is told', async () => {
    const node = makeActionsNode({ script: 'scripts/none.sh' });
    node.put('web');
    expect((await node.reeve('deploy-action')).status).toBe(1);
    expect(node.results()).toMatchObject([
      { status: 'failed', reason: expect.stringMatching(/^cannot run ".*\/none.sh": no such program/) },
    ]);
    expect(node.inbox()).toEqual([]);
  });

  it('goes to the script that is shipped where none is configured', async () => {
    const node = makeActionsNode({ script: undefined });
    node.write('checkout/services/web/docker-compose.yml', 'services: [\n');
    node.put('web');
    expect((await node.reeve('deploy-action')).status).toBe(1);
    expect(node.results()).toMatchObject([
      { exitCode: expect.any(Number), outputTail: expect.stringContaining('deploy-service: ') },
    ]);
  });

  it('as a user that the machine does not have has failed, and is told', async () => {
    const node = makeActionsNode({ user: 'nobody-of-that-name' });
    node.put('web');
    expect((await node.reeve('deploy-action')).status).toBe(1);
    expect(node.results()).toMatchObject([
      { status: 'failed', reason: expect.stringContaining('no such user') },
    ]);
  });

  it('runs as the user that is configured', async () => {
    const node = makeActionsNode({ user: 'nobody' });
    execFileSync('chmod', ['755', node.root]);
    node.write('ran', '', 0o666);
    node.writeScript('id -un');
    node.put('web');
    expect((await node.reeve('deploy-action')).status).toBe(0);
    expect(node.results()).toMatchObject([{ status: 'completed', outputTail: 'nobody\n' }]);
  });

  it('that takes too long is ended with all that it has started, and told (D38, D41, D44)', async () => {
    const node = makeActionsNode({ timeout: '8s' });
    node.writeScript(`echo begun; (trap '' TERM; sleep 300) & echo $! > $ROOT/child; (sleep 300) & wait`);
    node.put('web');
    const startedAtMs = performance.now();
    expect((await node.reeve('deploy-action')).status).toBe(1);
    expect(performance.now() - startedAtMs).toBeLessThan(100_000);
    expect(node.results()).toMatchObject([
      { status: 'failed', reason: 'timeout: no end within 8s: begun', outputTail: 'begun\n' },
    ]);
    const child = Number(readFileSync(join(node.root, 'child'), 'utf8'));
    await until(() => !isAlive(child));
    expect([node.inbox(), node.markers()]).toEqual([[], ['redeploy-vps-web reported failed']]);
  });

  it('that is stopped half-way is ended, told, and not run again (O70)', async () => {
    const node = makeActionsNode();
    node.writeScript('echo $$ > $ROOT/pid; sleep 300');
    node.put('web');
    node.put('queue');
    const running = node.start('deploy-action');
    await until(() => readPid(node) > 0);
    running.child.kill('SIGTERM');
    expect((await running.ended).status).toBe(143);
    expect(isAlive(readPid(node))).toBe(false);
    expect(node.results()).toMatchObject([
      { actionId: 'redeploy-vps-queue', status: 'failed', reason: 'interrupted: the run was stopped' },
    ]);
    expect(node.inbox()).toEqual(['redeploy-vps-web.json']);
    node.writeScript('');
    await node.reeve('deploy-action');
    expect(node.ran()).toEqual(['queue', 'web']);
  });

  it('says no more of what its script prints than an event may have', async () => {
    const node = makeActionsNode();
    node.writeScript('head -c 30000000 /dev/zero | tr "\\0" "\\033"; echo end');
    node.put('web');
    expect((await node.reeve('deploy-action')).status).toBe(0);
    const [{ outputTail = '' } = {}] = node.results();
    expect([outputTail.length, outputTail.slice(-4)]).toEqual([8192, 'end\n']);
  });

  it('that leaves a daemon does not keep the lock (R40)', async () => {
    const node = makeActionsNode();
    // Before that it is one of the script's group, which ends with the script.
    const daemonize = "setsid sh -c 'echo $$ > $ROOT/own; exec sleep 60' > /dev/null 2>&1 < /dev/null";
    node.writeScript(`export ROOT; ${daemonize} & while [ ! -s $ROOT/own ]; do sleep 0.01; done`);
    node.put('web');
    await node.reeve('deploy-action');
    const daemon = Number(readFileSync(join(node.root, 'own'), 'utf8'));
    try {
      expect(isAlive(daemon)).toBe(true);
      expect((await node.reeve('deploy-action')).status).toBe(0);
    } finally {
      process.kill(daemon, 'SIGKILL');
    }
  });
});
