// Others take back what is being dispatched, or has been: what is not to be deployed does not stay where a node pulls it.
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { applyDispatch } from '../../../src/lib/action/apply.ts';
import type { FoundAction } from '../../../src/lib/actions/control/found.ts';
import { readAction } from '../../../src/lib/actions/control/tree.ts';
import { markerKey } from '../../../src/lib/deploy-runner/key.ts';
import { actionId, anAction, type ControlHost, makeControlHost } from '../../support/control-host.ts';
import { fileCalls, runUnderFault } from '../../support/faults.ts';

const file = `${actionId}.json`;

async function approveOne(): Promise<ControlHost> {
  const host = makeControlHost();
  host.propose();
  await host.reeve('action', 'approve', actionId, '--yes');
  return host;
}

function moveByHand({ root }: ControlHost, from: string, to: string): void {
  renameSync(join(root, from, file), join(root, to, file));
}

/** What is left beside actions. */
function leftOvers(host: ControlHost): string[] {
  return ['approved', 'running'].flatMap((state) =>
    host.names(`homelab/actions/${state}`, true).filter((name) => name.startsWith('.')),
  );
}

function handed(host: ControlHost): string[] {
  const directory = 'homelab/actions/deploy/web-1';
  return existsSync(join(host.dir, directory)) ? host.names(directory, true) : [];
}

/** As the executor does it once it has read the approved action, which `meanwhile` does something to. */
async function dispatchLate(host: ControlHost, meanwhile: () => void): Promise<string> {
  const found = (await readAction(host.root, 'approved', actionId)) as FoundAction;
  meanwhile();
  const key = markerKey(found.action, found.bytes);
  const step = { kind: 'dispatch', found, key, reason: 'approved' } as const;
  const ctx = {
    ...{ root: host.root, clock: { now: () => new Date() } },
    paths: { runDir: join(host.dir, 'run') },
  } as Parameters<typeof applyDispatch>[0];
  return await applyDispatch(ctx, step).then(
    () => 'done',
    (error: Error) => error.message,
  );
}

describe('an approved action that somebody moves while it is dispatched', () => {
  it.each(['pending', 'rejected', 'cancelled'])('D3 to %s is given to no node', async (to) => {
    const host = await approveOne();
    const end = await dispatchLate(host, () => moveByHand(host, 'approved', to));
    expect(end).toContain('somebody else has moved it');
    expect([host.statesOf(actionId), handed(host), leftOvers(host)]).toStrictEqual([[to], [], []]);
  });

  it('D3 away and writes anew is given to no node as it was', async () => {
    const host = await approveOne();
    const other = JSON.stringify({ ...anAction(), status: 'approved', correlation_id: 'other' });
    const end = await dispatchLate(host, () => {
      // By the same number, which is free, or by another.
      rmSync(join(host.root, 'approved', file));
      writeFileSync(join(host.root, 'approved', file), other);
    });
    expect(end).toContain('somebody else has written it anew');
    expect([host.statesOf(actionId), handed(host), leftOvers(host)]).toStrictEqual([['approved'], [], []]);
    expect(host.bytes(`homelab/actions/approved/${file}`).toString()).toBe(other);
  });

  it('D3 to running, as another executor, stays at its node', async () => {
    const host = await approveOne();
    const bytes = host.bytes(`homelab/actions/approved/${file}`);
    const end = await dispatchLate(host, () => {
      host.write(`homelab/actions/deploy/web-1/${file}`, bytes);
      moveByHand(host, 'approved', 'running');
    });
    expect(end).toMatch(/somebody else has moved it|there is one of the same id already/);
    expect([host.statesOf(actionId), handed(host), leftOvers(host)]).toStrictEqual([['running'], [file], []]);
  });
});

describe('an action that somebody takes back after a kill in its dispatch', () => {
  it.each([
    ['moves to cancelled', (host: ControlHost) => moveByHand(host, 'approved', 'cancelled'), ['cancelled']],
    ['removes', (host: ControlHost) => rmSync(join(host.root, 'approved', file)), []],
  ])(
    'D3 D11 and %s is given to no node',
    async (_, takeBack, states) => {
      let between = 0;
      for (let n = 1, hit = true; hit; n += 1) {
        const host = await approveOne();
        const kill = { calls: fileCalls.sync, effect: 'signal=KILL' };
        const run = await runUnderFault(
          [inject('reeveBin'), 'action', 'dispatch'],
          host.environment,
          kill,
          n,
        );
        hit = run.hit;
        if (host.statesOf(actionId)[0] !== 'approved') continue;
        const isHanded = handed(host).includes(file);
        between += isHanded ? 1 : 0;
        takeBack(host);
        expect([n, (await host.reeve('action', 'dispatch')).status]).toStrictEqual([n, 0]);
        expect([
          n,
          host.statesOf(actionId),
          handed(host).filter((name) => !name.startsWith('.')),
          leftOvers(host),
        ]).toStrictEqual([n, states, [], []]);
      }
      expect(between).toBeGreaterThan(0);
    },
    400_000,
  );
});

describe('a running action that somebody takes back', () => {
  it('D3 has its file taken from its node, and nothing else is', async () => {
    const host = await approveOne();
    await host.reeve('action', 'dispatch');
    const other = { ...anAction(), action_id: 'redeploy-web-1-other' };
    host.write('homelab/actions/deploy/web-1/redeploy-web-1-other.json', other);
    host.write('homelab/actions/deploy/web-1/notes.txt', 'x');
    host.write(`homelab/actions/deploy/web-2/${file}`, { ...anAction(), node: 'web-2' });
    moveByHand(host, 'running', 'cancelled');
    const end = await host.reeve('action', 'dispatch', '--json');
    expect([end.status, end.json()]).toMatchObject([
      0,
      {
        outcome: 'done',
        actions: [
          {
            action: 'withdraw',
            id: actionId,
            to: null,
            reason: 'somebody has taken it back: it is cancelled',
          },
        ],
      },
    ]);
    expect([handed(host), host.names('homelab/actions/deploy/web-2')]).toStrictEqual([
      ['notes.txt', 'redeploy-web-1-other.json'],
      [file],
    ]);
    expect((await host.reeve('action', 'dispatch', '--json')).json().outcome).toBe('nothing-to-do');
  });

  it('and approves anew keeps the file of the new approval', async () => {
    const host = await approveOne();
    await host.reeve('action', 'dispatch');
    moveByHand(host, 'running', 'cancelled');
    host.propose({ correlation_id: 'drift-8' });
    await host.reeve('action', 'approve', actionId, '--yes');
    const bytes = host.bytes(`homelab/actions/approved/${file}`);
    expect((await host.reeve('action', 'dispatch')).status).toBe(0);
    expect(host.bytes(`homelab/actions/deploy/web-1/${file}`)).toStrictEqual(bytes);
    expect((await host.reeve('action', 'dispatch', '--json')).json().outcome).toBe('nothing-to-do');
    expect(handed(host)).toStrictEqual([file]);
  });
});
