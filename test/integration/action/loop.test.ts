// The control side by whole commands: from pending to its end, on the files that a supervisor and nodes write.
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAction } from '../../../src/lib/deploy-runner/action.ts';
import { markerKey } from '../../../src/lib/deploy-runner/key.ts';
import {
  actionId,
  anAction,
  aResult,
  dispatchAndReport,
  makeControlHost,
} from '../../support/control-host.ts';

const now = (): number => Math.floor(Date.now() / 1000);

describe('the way of an action', () => {
  it('D2 D4 D5 D11 is pending, approved, running with its approved bytes at its node, and completed by its result', async () => {
    const host = makeControlHost();
    host.propose();
    const began = now();

    const approved = await host.reeve(
      'action',
      'approve',
      actionId,
      '--yes',
      '--reason',
      'looks right',
      '--json',
    );
    expect([approved.status, approved.json()]).toMatchObject([
      0,
      { outcome: 'done', by: 'operator-ann', action: { id: actionId, state: 'approved' } },
    ]);
    expect(host.statesOf(actionId)).toStrictEqual(['approved']);
    const { transition_history: history, ...rest } = host.read('approved', actionId);
    const { transition_history: _, ...proposed } = anAction();
    expect(rest).toStrictEqual({ ...proposed, status: 'approved', updated_at: expect.any(Number) });
    expect(history).toStrictEqual([
      {
        from: 'pending',
        to: 'approved',
        timestamp: rest.updated_at,
        by: 'operator-ann',
        reason: 'looks right',
      },
    ]);
    expect(rest.updated_at).toBeGreaterThanOrEqual(began);
    expect(rest.updated_at).toBeLessThanOrEqual(now());

    const bytes = host.bytes(`homelab/actions/approved/${actionId}.json`);
    const key = markerKey(parseAction(bytes), bytes);
    const dispatched = await host.reeve('action', 'dispatch', '--json');
    expect([dispatched.status, dispatched.json()]).toMatchObject([
      0,
      { outcome: 'done', actions: [{ action: 'dispatch', id: actionId, to: 'running', outcome: 'done' }] },
    ]);
    expect(host.bytes(`homelab/actions/deploy/web-1/${actionId}.json`)).toStrictEqual(bytes);
    expect(host.statesOf(actionId)).toStrictEqual(['running']);
    expect(host.read('running', actionId).transition_history.at(-1)).toMatchObject({
      ...{ from: 'approved', to: 'running', by: 'system', key },
    });

    expect(await host.reeve('action', 'settle')).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('node web-1 has not reported yet'),
    });
    const { name, content } = aResult({ key });
    host.write(`homelab/events/web-1/${name}`, content);
    const settled = await host.reeve('action', 'settle', '--json');
    expect([settled.status, settled.json()]).toMatchObject([
      0,
      { outcome: 'done', actions: [{ action: 'finish', id: actionId, to: 'completed' }] },
    ]);
    expect(host.statesOf(actionId)).toStrictEqual(['completed']);
    expect(host.read('completed', actionId)).toMatchObject({
      ...{ status: 'completed', correlation_id: 'drift-7', result: { event: name, exit_code: 0 } },
      transition_history: [
        { to: 'approved' },
        { to: 'running' },
        { from: 'running', to: 'completed', by: 'system' },
      ],
    });
    expect(host.names('homelab/actions/deploy/web-1', true)).toStrictEqual([]);
    expect((await host.reeve('action', 'dispatch', '--settle', '--json')).json().outcome).toBe(
      'nothing-to-do',
    );
  });

  it('D11 ends as failed, with what the node says, and shows its output', async () => {
    const host = makeControlHost();
    host.propose();
    await host.reeve('action', 'approve', actionId, '--yes');
    await host.reeve('action', 'dispatch');
    const { key } = host.read('running', actionId).transition_history.at(-1);
    const { name, content } = aResult({ key, status: 'failed' });
    Object.assign((content as { payload: object }).payload, {
      ...{ reason: 'compose could not', output_tail: 'no such image\u001b[2J' },
    });
    host.write(`homelab/events/2026-06-04/web-1/${name}`, content);
    host.write(`homelab/events/2999-01-01/web-1/${name}`, content);
    expect((await host.reeve('action', 'settle')).status).toBe(0);
    expect(host.statesOf(actionId)).toStrictEqual(['failed']);
    const show = await host.reeve('action', 'show', actionId);
    expect(show.stdout).toContain('node web-1 reports failed, exit code 3: compose could not');
    expect(show.stdout).toContain('no such image\\u001b[2J');
  });

  it('D40 fails after 900 s without a result, takes its file from the node, and a later result changes nothing', async () => {
    const host = makeControlHost();
    host.propose();
    await host.reeve('action', 'approve', actionId, '--yes');
    await host.reeve('action', 'dispatch');
    const { key } = host.read('running', actionId).transition_history.at(-1);
    host.age(actionId, 840);
    await host.reeve('action', 'settle');
    expect(host.statesOf(actionId)).toStrictEqual(['running']);
    host.age(actionId, 61);
    expect((await host.reeve('action', 'settle')).stdout).toContain('has reported nothing for 15m');
    expect(host.statesOf(actionId)).toStrictEqual(['failed']);
    expect(host.names('homelab/actions/deploy/web-1', true)).toStrictEqual([]);
    const failed = host.bytes(`homelab/actions/failed/${actionId}.json`);

    const { name, content } = aResult({ key });
    host.write(`homelab/events/web-1/${name}`, content);
    await host.reeve('action', 'dispatch', '--settle');
    expect(host.statesOf(actionId)).toStrictEqual(['failed']);
    expect(host.bytes(`homelab/actions/failed/${actionId}.json`)).toStrictEqual(failed);
    expect((await host.reeve('action', 'show', actionId)).stdout).toMatch(
      /reported completed.*too late to count/,
    );
  });

  it('D40 fails after REDEPLOY_TIMEOUT_SECS where that is set, and says so before', async () => {
    const host = makeControlHost();
    host.propose();
    const run = (...words: string[]) => host.start(words, ['env', 'REDEPLOY_TIMEOUT_SECS=700']).end;
    expect((await run('action', 'approve', actionId, '--yes')).stdout).toContain(
      'within 11m 40s it has failed',
    );
    await run('action', 'dispatch');
    host.age(actionId, 640);
    await run('action', 'settle');
    expect(host.statesOf(actionId)).toStrictEqual(['running']);
    host.age(actionId, 61);
    await run('action', 'settle');
    expect(host.statesOf(actionId)).toStrictEqual(['failed']);
  });

  it('D42 is another approval where the same id is approved again, and no result of the first one ends it', async () => {
    const host = makeControlHost();
    const keys: string[] = [];
    for (const round of [1, 2]) {
      host.propose();
      expect((await host.reeve('action', 'approve', actionId, '--yes')).status).toBe(0);
      await host.reeve('action', 'dispatch', '--settle');
      expect(host.statesOf(actionId)).toContain('running');
      const { key } = host.read('running', actionId).transition_history.at(-1);
      keys.push(key);
      if (round === 2) {
        await host.reeve('action', 'settle');
        expect(host.statesOf(actionId)).toStrictEqual(['running', 'completed']);
      }
      const { name, content } = aResult({ key });
      host.write(`homelab/events/web-1/${name}`, content);
      await host.reeve('action', 'settle');
      expect(host.statesOf(actionId)).toStrictEqual(['completed']);
    }
    expect(new Set(keys).size).toBe(2);
  });

  it('R37 waits approved while an earlier one of its id is running, and then goes', async () => {
    const host = makeControlHost();
    host.propose();
    await host.reeve('action', 'approve', actionId, '--yes');
    await host.reeve('action', 'dispatch');
    const first = host.bytes(`homelab/actions/deploy/web-1/${actionId}.json`);
    host.propose();
    expect((await host.reeve('action', 'approve', actionId, '--yes')).status).toBe(0);
    host.propose();
    expect(await host.reeve('action', 'approve', actionId, '--yes')).toMatchObject({
      status: 65,
      stderr: expect.stringContaining('an earlier one of this id is approved, and still to be dispatched'),
    });
    expect(await host.reeve('action', 'dispatch')).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('an earlier one of this id is running'),
    });
    expect(host.bytes(`homelab/actions/deploy/web-1/${actionId}.json`)).toStrictEqual(first);
    const { key } = host.read('running', actionId).transition_history.at(-1);
    const { name, content } = aResult({ key });
    host.write(`homelab/events/web-1/${name}`, content);
    await host.reeve('action', 'dispatch', '--settle');
    expect(host.statesOf(actionId)).toStrictEqual(['pending', 'running', 'completed']);
    expect(host.bytes(`homelab/actions/deploy/web-1/${actionId}.json`)).not.toStrictEqual(first);
  });

  it('never carries the same approval out a second time, although its file is put back', async () => {
    const host = makeControlHost();
    await dispatchAndReport(host);
    await host.reeve('action', 'settle');
    host.write(
      `homelab/actions/approved/${actionId}.json`,
      host.bytes(`homelab/actions/completed/${actionId}.json`),
    );
    await host.reeve('action', 'dispatch', '--settle');
    expect(host.statesOf(actionId)).toStrictEqual(['rejected', 'completed']);
    expect(host.names('homelab/actions/deploy/web-1', true)).toStrictEqual([]);
  });

  it('D3 takes an action that a person has moved to approved by hand, with its own bytes and no word added', async () => {
    const host = makeControlHost();
    const { transition_history: _, ...bare } = anAction();
    const text = JSON.stringify(bare);
    host.write(`homelab/actions/approved/${actionId}.json`, text);
    await host.reeve('action', 'dispatch');
    expect(host.bytes(`homelab/actions/deploy/web-1/${actionId}.json`).toString()).toBe(text);
    const key = markerKey(parseAction(Buffer.from(text)), Buffer.from(text));
    expect(host.read('running', actionId).transition_history).toMatchObject([{ to: 'running', key }]);
    const { name, content } = aResult({ key });
    host.write(`homelab/events/web-1/${name}`, content);
    await host.reeve('action', 'settle');
    expect(host.statesOf(actionId)).toStrictEqual(['completed']);
  });

  it('D19 leaves other types, and what is dispatched to others, to their own executor', async () => {
    const host = makeControlHost();
    const restart = { ...anAction(), action_id: 'container-restart-web-1-blog', type: 'container_restart' };
    for (const state of ['approved', 'running'])
      host.write(`homelab/actions/${state}/${restart.action_id}.json`, restart);
    host.write('homelab/actions/dispatch/web-1/x.json', '{}');
    const end = await host.reeve('action', 'dispatch', '--settle', '--json');
    expect([end.status, end.json().outcome]).toStrictEqual([0, 'nothing-to-do']);
    expect(host.statesOf(restart.action_id)).toStrictEqual(['approved', 'running']);
    expect(host.names('homelab/actions')).not.toContain('deploy');
    expect(host.names('homelab/actions/dispatch/web-1')).toStrictEqual(['x.json']);
  });

  it('D3 D5 is off without actions.root, and says so', async () => {
    const host = makeControlHost();
    host.write('reeve.yaml', 'cluster: { nodeId: web-1, store: "file:///tmp/none" }\n');
    for (const words of [
      ['list'],
      ['show', 'x'],
      ['approve', 'x', '--yes'],
      ['reject', 'x', '--yes'],
      ['dispatch'],
      ['settle'],
    ]) {
      expect((await host.reeve('action', ...words)).status).toBe(78);
    }
    host.write('reeve.yaml', `actions: { root: ${host.dir}/none }\n`);
    expect(await host.reeve('action', 'dispatch')).toMatchObject({
      status: 78,
      stderr: expect.stringContaining(`there is no directory ${host.dir}/none`),
    });
  });

  it('keeps owner and mode of the files and directories that others read, whatever the umask', async () => {
    const host = makeControlHost();
    host.propose();
    expect(spawnSync('chown', ['-R', '1000:1000', join(host.dir, 'homelab')]).status).toBe(0);
    spawnSync('chmod', ['0640', join(host.root, 'pending', `${actionId}.json`)]);
    spawnSync('chmod', ['0750', host.root]);
    const run = (...words: string[]) =>
      host.start(words, ['/bin/sh', '-c', 'umask 077; exec "$@"', 'sh']).end;
    await run('action', 'approve', actionId, '--yes');
    await run('action', 'dispatch');
    const about = (name: string) => {
      const { uid, gid, mode } = statSync(join(host.root, name));
      return [uid, gid, (mode & 0o777).toString(8)];
    };
    expect(about(`running/${actionId}.json`)).toStrictEqual([1000, 1000, '640']);
    expect(about('deploy')).toStrictEqual([1000, 1000, '750']);
    expect(about('deploy/web-1')).toStrictEqual([1000, 1000, '750']);
    expect(about(`deploy/web-1/${actionId}.json`)[2]).toBe('644');
  });
});
