// A person at a terminal: what is asked before an action is decided, and what is told to whoever comes too late.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { actionId, anAction, type ControlHost, makeControlHost } from '../../support/control-host.ts';
import { type Program, type ProgramEnd, startProcess } from '../../support/programs.ts';

/** On a terminal of its own. */
function atTerminal(host: ControlHost, ...words: string[]): Program {
  const command = `${inject('reeveBin')} ${words.join(' ')}`;
  return startProcess('script', ['-qefc', command, '/dev/null'], { ...host.environment });
}

async function answer(program: Program, line: string): Promise<ProgramEnd> {
  await program.waitFor('[y/N]');
  program.tell(line);
  return await program.ended;
}

describe('a person', () => {
  it('is shown what would happen, and nothing happens without a yes', async () => {
    const host = makeControlHost();
    host.propose();
    for (const line of ['', 'n', 'nonsense']) {
      const end = await answer(atTerminal(host, 'action', 'approve', actionId), line);
      expect(end.status).toBe(0);
      expect(end.stdout).toContain(
        `${actionId}: redeploy of service blog on node web-1, risk guarded, because: unhealthy for 5 minutes`,
      );
      expect(end.stdout).toContain(
        'node web-1 makes the containers of service blog anew, from the checkout that it has',
      );
      expect(host.statesOf(actionId)).toStrictEqual(['pending']);
      expect(existsSync(join(host.dir, 'run/wake'))).toBe(false);
    }
    const end = await answer(atTerminal(host, 'action', 'approve', actionId), 'y');
    expect([end.status, host.statesOf(actionId)]).toStrictEqual([0, ['approved']]);
    expect(end.stdout).toContain(`${actionId} is approved by operator-ann`);
    // The executor's path unit waits for it.
    expect(host.names('run/wake')).toStrictEqual(['action']);
  });

  it('approves what was shown, and nothing that has taken its place meanwhile', async () => {
    const host = makeControlHost();
    host.propose();
    const asked = atTerminal(host, 'action', 'approve', actionId);
    await asked.waitFor('[y/N]');
    host.propose({ service: 'database' });
    const end = await answer(asked, 'y');
    expect([end.status, host.statesOf(actionId)]).toStrictEqual([65, ['pending']]);
    expect(end.stdout).toContain(`cannot approve ${actionId}: it was written anew meanwhile`);
  });

  it('reads what proposes an action in the order in which it is written', async () => {
    const host = makeControlHost();
    host.propose({ details: { reason: 'all is \u202ellew' } });
    expect((await answer(atTerminal(host, 'action', 'approve', actionId), 'n')).stdout).toContain(
      'because: all is \\u202ellew',
    );
    for (const words of [['list'], ['show', actionId]]) {
      expect((await host.reeve('action', ...words)).stdout).toContain('all is \\u202ellew');
    }
  });

  it('is asked for --yes where there is no terminal', async () => {
    const host = makeControlHost();
    host.propose();
    for (const verb of ['approve', 'reject']) {
      const end = host.start(['action', verb, actionId]);
      end.child.stdin.end();
      expect(await end.end).toMatchObject({ status: 64, stderr: expect.stringContaining('say --yes') });
    }
    expect(host.statesOf(actionId)).toStrictEqual(['pending']);
  });

  it('is told that it is decided already, or otherwise, or unknown', async () => {
    const host = makeControlHost();
    host.propose();
    const decide = (verb: string) => host.reeve('action', verb, actionId, '--yes', '--json');
    expect((await decide('approve')).json().outcome).toBe('done');
    const second = await decide('approve');
    expect([second.status, second.json()]).toMatchObject([
      0,
      { outcome: 'nothing-to-do', action: { state: 'approved' } },
    ]);
    expect(await decide('reject')).toMatchObject({
      status: 65,
      stderr: expect.stringContaining('it is approved already'),
    });
    await host.reeve('action', 'dispatch');
    expect((await decide('approve')).json()).toMatchObject({
      outcome: 'nothing-to-do',
      action: { state: 'running' },
    });
    expect(await host.reeve('action', 'approve', 'none', '--yes')).toMatchObject({
      status: 65,
      stderr: expect.stringContaining('there is no action none'),
    });
  });

  it('puts one aside by a rejection with its reason, and a new one of the same id can be approved', async () => {
    const host = makeControlHost();
    host.propose();
    expect((await host.reeve('action', 'reject', actionId, '--yes', '--reason', ' not\nnow ')).status).toBe(
      0,
    );
    expect(host.read('rejected', actionId)).toMatchObject({
      status: 'rejected',
      transition_history: [{ from: 'pending', to: 'rejected', by: 'operator-ann', reason: 'not now' }],
    });
    await host.reeve('action', 'dispatch', '--settle');
    expect(host.statesOf(actionId)).toStrictEqual(['rejected']);
    expect((await host.reeve('action', 'approve', actionId, '--yes')).status).toBe(65);
    host.propose();
    expect((await host.reeve('action', 'approve', actionId, '--yes')).status).toBe(0);
    expect(host.statesOf(actionId)).toStrictEqual(['approved', 'rejected']);
    const { stdout } = await host.reeve('history');
    expect(stdout).toMatch(/reject.*by operator-ann: not now\n.*approve.*by operator-ann/);
  });

  it('sees what is open, and with --all what has ended, as text and as data', async () => {
    const host = makeControlHost();
    expect(await host.reeve('action', 'list')).toMatchObject({
      status: 0,
      stdout: 'no action is pending, approved or running\n',
    });
    host.propose();
    host.write('homelab/actions/completed/old.json', { ...anAction(), action_id: 'old' });
    const [open, all] = [
      await host.reeve('action', 'list'),
      await host.reeve('action', 'list', '--all', '--json'),
    ];
    expect(open.stdout.split('\n')[1]).toMatch(
      /^pending\s+redeploy-web-1-blog\s+redeploy\s+web-1\s+blog\s+guarded\s+.+ ago\s+unhealthy for 5 minutes$/,
    );
    expect(all.json().actions.map(({ id, state }: Record<string, string>) => [state, id])).toStrictEqual([
      ['pending', actionId],
      ['completed', 'old'],
    ]);
    const { stdout } = await host.reeve('action', 'show', actionId);
    expect(stdout).toContain('  diff:\n    -a\n    +b\n');
  });

  it('D3 approves an action of another type, and is told that another executor has to take it', async () => {
    const host = makeControlHost();
    host.propose({ type: 'container_restart' });
    const end = await host.reeve('action', 'approve', actionId, '--yes');
    expect(end).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('another executor has to take it'),
    });
    expect(host.statesOf(actionId)).toStrictEqual(['approved']);
  });
});
