// Several at once: operators who decide about one action, and others who take no lock of ours and move its file themselves.
import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { actionId, type ControlEnd, type ControlHost, makeControlHost } from '../../support/control-host.ts';

describe('operators at the same time', () => {
  it('R37 decide once, whatever each of them wants, and each is told', async () => {
    for (const round of [1, 2, 3]) {
      const host = makeControlHost();
      host.propose();
      const ends = await Promise.all(
        Array.from({ length: 8 }, (_, index) => {
          const verb = (index + round) % 2 === 0 ? 'approve' : 'reject';
          const words = ['action', verb, actionId, '--yes', '--json', '--wait', '60'];
          return host.reeve(...words).then((end) => ({ verb, ...end }));
        }),
      );
      const winners = ends.filter(({ stdout }) => JSON.parse(stdout).outcome === 'done');
      expect(winners).toHaveLength(1);
      const decided = winners[0]?.verb === 'approve' ? 'approved' : 'rejected';
      expect(host.statesOf(actionId)).toStrictEqual([decided]);
      expect(host.read(decided, actionId).transition_history).toHaveLength(1);
      expect(ends.map(({ verb, status }) => [verb === winners[0]?.verb, status])).toStrictEqual(
        ends.map(({ verb }) => (verb === winners[0]?.verb ? [true, 0] : [false, 65])),
      );
    }
  });

  it('decide about many, while the executor dispatches, and none is lost or dispatched twice', async () => {
    const host = makeControlHost();
    const ids = Array.from({ length: 12 }, (_, index) =>
      host.propose({ action_id: `redeploy-web-1-s${index}` }),
    );
    let isOver = false;
    const executor = (async () => {
      while (!isOver) expect([0, 75]).toContain((await host.reeve('action', 'dispatch', '--settle')).status);
    })();
    const ends = await Promise.all(
      ids.map((id) => host.reeve('action', 'approve', id, '--yes', '--wait', '60')),
    );
    isOver = true;
    await executor;
    expect((await host.reeve('action', 'dispatch', '--wait', '10')).status).toBe(0);
    expect(ends.map(({ status }) => status)).toStrictEqual(ids.map(() => 0));
    for (const id of ids) {
      expect(host.statesOf(id)).toStrictEqual(['running']);
      expect(host.read('running', id).transition_history.map(({ to }: { to: string }) => to)).toStrictEqual([
        ...['approved', 'running'],
      ]);
    }
    expect(host.names('homelab/actions/deploy/web-1')).toStrictEqual(ids.map((id) => `${id}.json`).sort());
  });
});

/** When somebody else moves it: as soon as it is so. */
const moments: [string, (host: ControlHost) => boolean][] = [
  ['at once', () => true],
  ['once the lock is taken', ({ dir }) => existsSync(join(dir, 'run/locks/action.lock'))],
  [
    'once the approval lies ready',
    (host) => approvedNames(host).some((name) => name.startsWith('.reeve-move')),
  ],
  ['once it is approved', (host) => approvedNames(host).includes(`${actionId}.json`)],
];

describe('others who take no lock', () => {
  it.each(['cancelled', 'approved'])(
    'D3 move a pending action to %s meanwhile, and it is in one place',
    async (to) => {
      const seen = new Set<boolean>();
      for (const [moment, isSo] of moments.flatMap((one) => [one, one, one])) {
        const host = makeControlHost();
        host.propose();
        const { end, isFirst } = await approveWhile(host, isSo, to);
        // The faster one has its way, and the other is told.
        const lost = to === 'cancelled' ? [65, 'failed'] : [0, 'nothing-to-do'];
        expect([moment, host.statesOf(actionId), end.status, end.json().outcome]).toStrictEqual([
          moment,
          ...(isFirst ? [[to], ...lost] : [['approved'], 0, 'done']),
        ]);
        expect(approvedNames(host).filter((name) => name.startsWith('.'))).toEqual([]);
        seen.add(isFirst);
      }
      expect(seen.size).toBe(2);
    },
  );
});

async function approveWhile(
  host: ControlHost,
  isSo: (host: ControlHost) => boolean,
  to: string,
): Promise<{ end: ControlEnd; isFirst: boolean }> {
  let isOver = false;
  const deciding = host.reeve('action', 'approve', actionId, '--yes', '--json').finally(() => {
    isOver = true;
  });
  while (!isOver && !isSo(host)) await nextTurn();
  const isFirst = moveAway(host, to);
  return { end: await deciding, isFirst };
}

function approvedNames(host: ControlHost): string[] {
  return host.names('homelab/actions/approved', true);
}

/** Whether it was there to be moved. */
function moveAway(host: ControlHost, to: string): boolean {
  try {
    const name = `${actionId}.json`;
    renameSync(join(host.root, 'pending', name), join(host.root, to, name));
    return true;
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe('ENOENT');
    return false;
  }
}
