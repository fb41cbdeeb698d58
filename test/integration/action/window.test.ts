// A look of the timer that follows what is under way: an end is seen at once, whoever decides meanwhile finds the lock free, and with
// nothing under way it is one look.
import { describe, expect, it } from 'vitest';
import { onTestFinished } from '../../support/after-test.ts';
import { actionId, aResult, type ControlHost, makeControlHost } from '../../support/control-host.ts';

const words = ['action', 'dispatch', '--settle', '--wait', '10', '--window'];
const other = 'redeploy-web-1-shop';
const limit = { timeout: 40_000 };

function report(host: ControlHost, id: string): void {
  const { key } = host.read('running', id).transition_history.at(-1);
  const { name, content } = aResult({ key, id });
  host.write(`homelab/events/web-1/${name}`, content);
}

describe('a window of looks', () => {
  it('D11 dispatches and ends what comes during it, in one process, and tells each thing once', async () => {
    const host = makeControlHost();
    host.propose();
    await host.reeve('action', 'approve', '--yes', actionId);
    const window = host.start([...words, '120']);
    onTestFinished(() => void window.child.kill('SIGKILL'));
    await expect.poll(() => host.statesOf(actionId), limit).toStrictEqual(['running']);
    await window.waitFor(`${actionId}: approved -> running`);
    // Nobody waits for the window: it has the lock while it looks.
    host.propose({ action_id: other });
    expect((await host.reeve('action', 'approve', '--yes', '--wait', '60', other)).status).toBe(0);
    await expect.poll(() => host.statesOf(other), limit).toStrictEqual(['running']);
    report(host, actionId);
    await expect.poll(() => host.statesOf(actionId), limit).toStrictEqual(['completed']);
    expect(window.child.exitCode).toBe(null);
    report(host, other);
    const end = await window.end;
    expect([end.status, host.statesOf(other)]).toStrictEqual([0, ['completed']]);
    const told = `${end.stdout}${end.stderr}`;
    for (const id of [actionId, other]) {
      for (const move of ['approved -> running', 'running -> completed']) {
        expect(told.split(`${id}: ${move}`)).toHaveLength(2);
      }
    }
  });

  it('is one look where nothing is under way, and its data has what every look did', async () => {
    const host = makeControlHost();
    host.write('homelab/actions/approved/NOTES', 'x');
    const none = await host.reeve(...words, '120', '--json');
    expect([none.status, none.json()]).toMatchObject([0, { outcome: 'nothing-to-do', actions: [] }]);
    host.propose();
    await host.reeve('action', 'approve', '--yes', actionId);
    const one = await host.reeve(...words, '0', '--json');
    expect([one.status, one.json()]).toMatchObject([
      0,
      { outcome: 'done', actions: [{ action: 'dispatch' }] },
    ]);
    report(host, actionId);
    const all = await host.reeve(...words, '120', '--json');
    expect([all.status, all.json()]).toMatchObject([0, { outcome: 'done', actions: [{ action: 'finish' }] }]);
  });

  it('ends with its time, and at once with a stop', async () => {
    const host = makeControlHost();
    host.propose();
    await host.reeve('action', 'approve', '--yes', actionId);
    await host.reeve('action', 'dispatch');
    const over = await host.reeve(...words, '3', '--json');
    expect(over.json().actions).toMatchObject([{ action: 'wait', outcome: 'waits' }]);
    const window = host.start([...words, '120']);
    onTestFinished(() => void window.child.kill('SIGKILL'));
    await expect
      .poll(() => JSON.parse(host.bytes('state/runs/action.json').toString()).pid, limit)
      .toBe(window.child.pid);
    window.child.kill('SIGTERM');
    expect((await window.end).status).toBe(143);
    expect(host.statesOf(actionId)).toStrictEqual(['running']);
  });

  it('takes no other times than whole seconds up to five minutes', async () => {
    const host = makeControlHost();
    for (const value of ['-1', '1.5', '301', 'x', '']) {
      expect(await host.reeve('action', 'dispatch', '--window', value)).toMatchObject({ status: 64 });
    }
  });
});
