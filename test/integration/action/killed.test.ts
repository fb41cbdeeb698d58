// The control side killed at each rename, sync and removal: at that very instant the action is in one directory, whole, and the next
// command goes on from there.
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { actionId, aResult, type ControlHost, makeControlHost } from '../../support/control-host.ts';
import { attemptAtCalls, type Fault, fileCalls, runUnderFault } from '../../support/faults.ts';

type Stage = { words: readonly string[]; from: string; to: string };

const stages: Stage[] = [
  { words: ['action', 'approve', actionId, '--yes', '--reason', 'why'], from: 'pending', to: 'approved' },
  { words: ['action', 'reject', actionId, '--yes'], from: 'pending', to: 'rejected' },
  { words: ['action', 'dispatch'], from: 'approved', to: 'running' },
  { words: ['action', 'dispatch', '--settle'], from: 'running', to: 'completed' },
];
const kill = (calls: string): Fault => ({ calls, effect: 'signal=KILL' });
const faults: [string, Fault][] = [
  ['killed at a rename', kill(fileCalls.rename)],
  ['killed at a sync', kill(fileCalls.sync)],
  ['killed at a removal', kill(fileCalls.unlink)],
  ['failing at a rename', { calls: fileCalls.rename, effect: 'error=EIO' }],
  ['with a full disk at a write', { calls: fileCalls.write, effect: 'error=ENOSPC' }],
];

/** Up to the state that the stage begins in, with the result that its end needs. */
async function prepare({ from }: Stage): Promise<ControlHost> {
  const host = makeControlHost();
  host.propose();
  if (from !== 'pending') await host.reeve('action', 'approve', actionId, '--yes');
  if (from !== 'running') return host;
  await host.reeve('action', 'dispatch');
  report(host);
  return host;
}

function report(host: ControlHost): void {
  const { key } = host.read('running', actionId).transition_history.at(-1);
  const { name, content } = aResult({ key });
  host.write(`homelab/events/web-1/${name}`, content);
}

describe.each(stages)('$words.1 from $from', (stage) => {
  it.each(faults)(
    'D11 O70 %s has the action in one place, and is gone on with',
    async (_, fault) => {
      const { hits } = await attemptAtCalls(async (n) => {
        const host = await prepare(stage);
        const run = await runUnderFault([inject('reeveBin'), ...stage.words], host.environment, fault, n);
        expectOnePlace(host, stage);
        const again = await host.reeve(...stage.words);
        expect([n, again.status, again.stderr]).toMatchObject([n, 0, expect.anything()]);
        expectMoved(host, stage);
        await finish(host, stage.to);
        return run;
      });
      expect(hits).toBeGreaterThan(0);
    },
    400_000,
  );
});

function expectOnePlace(host: ControlHost, { from, to }: Stage): void {
  const [state = '', ...others] = host.statesOf(actionId);
  expect([[from, to].includes(state), others]).toStrictEqual([true, []]);
  expect(host.read(state, actionId).action_id).toBe(actionId);
}

const ways: Readonly<Record<string, readonly string[]>> = {
  approved: ['approved'],
  rejected: ['rejected'],
  running: ['approved', 'running'],
  completed: ['approved', 'running', 'completed'],
};

function expectMoved(host: ControlHost, { to }: Stage): void {
  expect(host.statesOf(actionId)).toStrictEqual([to]);
  const { status, transition_history: history } = host.read(to, actionId);
  expect(history.map((step: { to: string }) => step.to)).toStrictEqual(ways[to]);
  expect(status).toBe(to);
  expect(leftOvers(host)).toStrictEqual([]);
}

/** Whatever has happened on the way, it ends once. */
async function finish(host: ControlHost, state: string): Promise<void> {
  if (state === 'rejected' || state === 'completed') return;
  await host.reeve('action', 'dispatch');
  expect(host.names('homelab/actions/deploy/web-1')).toStrictEqual([`${actionId}.json`]);
  report(host);
  await host.reeve('action', 'settle');
  expect(host.statesOf(actionId)).toStrictEqual(['completed']);
}

function leftOvers(host: ControlHost): string[] {
  return ['approved', 'rejected', 'running', 'completed', 'failed'].flatMap((state) =>
    host
      .names(join('homelab/actions', state), true)
      .filter((name) => name.startsWith('.reeve-move'))
      .map((name) => `${state}/${name}`),
  );
}
