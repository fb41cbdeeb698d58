// Several at once: operators who decide about one action, and others who take no lock of ours and move its file themselves.
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { actionId, type ControlHost, makeControlHost } from '../../support/control-host.ts';

describe('operators at the same time', () => {
  it('R37 decide once, whatever each of them wants, and each is told', async () => {
    for (const round of [1, 2, 3]) {
      const host = makeControlHost();
      host.propose();
      const ends = await Promise.all(
        Array.from({ length: 8 }, (_, index) => {
          const verb = (index + round) % 2 === 0 ? 'approve' : 'reject';
          return host.reeve('action', verb, actionId, '--yes', '--json').then((end) => ({ verb, ...end }));
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
    const ends = await Promise.all(ids.map((id) => host.reeve('action', 'approve', id, '--yes')));
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

describe('others who take no lock', () => {
  it.each(['cancelled', 'approved'])(
    'D3 move a pending action to %s meanwhile, and it is in one place',
    async (to) => {
      for (let round = 0; round < 14; round += 1) {
        const host = makeControlHost();
        host.propose();
        const deciding = host.reeve('action', 'approve', actionId, '--yes', '--json');
        await sleep(120 + 20 * round);
        moveAway(host, to);
        const { status, json } = await deciding;
        const [state, ...others] = host.statesOf(actionId);
        expect(others).toStrictEqual([]);
        // The faster one has its way, and the other is told.
        expect([state, status]).toStrictEqual(state === 'cancelled' ? ['cancelled', 65] : ['approved', 0]);
        if (to === 'cancelled' && status === 0) expect(json().outcome).toBe('done');
        expect(host.names('homelab/actions/approved', true).filter((name) => name.startsWith('.'))).toEqual(
          [],
        );
      }
    },
  );
});

function moveAway(host: ControlHost, to: string): void {
  try {
    const name = `${actionId}.json`;
    renameSync(join(host.root, 'pending', name), join(host.root, to, name));
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe('ENOENT');
  }
}
