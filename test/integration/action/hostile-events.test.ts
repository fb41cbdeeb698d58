// What nodes write where their results are looked for: nothing of it is followed or believed, and none of it hides a true one.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { actionId, aResult, makeControlHost } from '../../support/control-host.ts';

describe('hostile events', () => {
  it('D11 end nothing, and do not hide the true one', async () => {
    const host = makeControlHost();
    host.propose();
    await host.reeve('action', 'approve', actionId, '--yes');
    await host.reeve('action', 'dispatch');
    const { key } = host.read('running', actionId).transition_history.at(-1) as { key: string };
    const events = join(host.dir, 'homelab/events/web-1');
    mkdirSync(events, { recursive: true });
    const nameAt = (epochMs: number): string => aResult({ epochMs }).name;
    const put = (epochMs: number, content: string | object): string =>
      host.write(`homelab/events/web-1/${nameAt(epochMs)}`, content);
    symlinkSync(host.write('true.json', aResult({ key }).content), join(events, nameAt(1)));
    execFileSync('mkfifo', [join(events, nameAt(2))]);
    mkdirSync(join(events, nameAt(3)));
    truncateSync(put(4, '{'), 50 * 1024 * 1024);
    put(5, 'no json');
    put(6, aResult({ key, node: 'web-2' }).content);
    put(7, aResult({ key, id: 'redeploy-web-1-other' }).content);
    put(8, aResult({ key: `${actionId}-${'0'.repeat(64)}` }).content);
    put(9, { ...aResult({ key }).content, type: 'service_healthy' });
    put(10, { ...aResult({ key }).content, payload: { action_id: actionId, status: 'running', key } });
    host.write(`homelab/events/web-2/${aResult({ key }).name}`, aResult({ key }).content);
    host.write(`homelab/events/../outside/${aResult({ key }).name}`, aResult({ key }).content);
    for (let index = 0; index < 3000; index += 1)
      writeFileSync(join(events, `evt-web-1-${index}-service_healthy.json`), '');

    const before = await host.reeve('action', 'settle');
    expect([before.status, host.statesOf(actionId)]).toStrictEqual([0, ['running']]);
    expect(before.stderr).toMatch(
      /^warning: 7 passed over that are no results, the first of them evt-[^\n]*\n$/,
    );
    const { name, content } = aResult({ key });
    host.write(`homelab/events/web-1/${name}`, content);
    await host.reeve('action', 'settle');
    expect(host.statesOf(actionId)).toStrictEqual(['completed']);
    expect(host.read('completed', actionId).result.event).toBe(name);
  });

  it.each([
    ['an hour behind', -3_600_000],
    ['an hour ahead', 3_600_000],
  ])(
    'D41 of a node whose clock is %s end its action all the same, also without a key once they come after it',
    async (_, skewMs) => {
      for (const isOwn of [true, false]) {
        const host = makeControlHost();
        host.propose();
        // Of an earlier approval, by the seed's own runner.
        const old = aResult({ status: 'failed', epochMs: Date.now() + skewMs - 5000 });
        host.write(`homelab/events/web-1/${old.name}`, old.content);
        await host.reeve('action', 'approve', actionId, '--yes');
        await host.reeve('action', 'dispatch', '--settle');
        await host.reeve('action', 'settle');
        expect(host.statesOf(actionId)).toStrictEqual(['running']);
        const { key } = host.read('running', actionId).transition_history.at(-1);
        const { name, content } = aResult({ ...(isOwn ? { key } : {}), epochMs: Date.now() + skewMs });
        host.write(`homelab/events/web-1/${name}`, content);
        await host.reeve('action', 'settle');
        expect([isOwn, host.statesOf(actionId)]).toStrictEqual([isOwn, ['completed']]);
      }
    },
  );

  it.each(['x', '9999999999999'])(
    'D46 in any number and under any name (evt-%s...) keep no true one out, and are told in one line',
    async (latest) => {
      const host = makeControlHost();
      host.propose();
      await host.reeve('action', 'approve', actionId, '--yes');
      await host.reeve('action', 'dispatch');
      const { key } = host.read('running', actionId).transition_history.at(-1);
      for (let index = 0; index < 600; index += 1)
        host.write(`homelab/events/web-1/evt-${latest}-action_result-${index}.json`, 'no json');
      const { name, content } = aResult({ key });
      host.write(`homelab/events/web-1/${name}`, content);
      const settled = await host.reeve('action', 'settle');
      expect(host.statesOf(actionId)).toStrictEqual(['completed']);
      expect(settled.stderr).toMatch(/^warning: 500 passed over that are no results, [^\n]*\n$/);
    },
  );

  it('D4 D40 that cannot be looked into keep no action from its node, and are why another has failed', async () => {
    const host = makeControlHost();
    const other = host.propose({ action_id: 'redeploy-web-1-shop', service: 'shop' });
    await host.reeve('action', 'approve', other, '--yes');
    await host.reeve('action', 'dispatch');
    host.propose();
    await host.reeve('action', 'approve', actionId, '--yes');
    rmSync(join(host.dir, 'homelab/events'), { recursive: true });
    host.write('homelab/events', 'no directory');
    const end = await host.reeve('action', 'dispatch', '--settle', '--json');
    const why = `cannot open "${host.dir}/homelab/events": it is a symbolic link, or no directory`;
    expect([end.status, end.json()]).toMatchObject([
      1,
      {
        outcome: 'partial',
        actions: [
          { action: 'wait', id: other, outcome: 'trouble', reason: expect.stringContaining(why) },
          { action: 'dispatch', id: actionId, outcome: 'done' },
        ],
      },
    ]);
    host.age(other, 900);
    await host.reeve('action', 'settle');
    expect(host.statesOf(other)).toStrictEqual(['failed']);
    expect(host.read('failed', other).transition_history.at(-1).reason).toContain(
      `has reported nothing for 15m that can be read: ${why}`,
    );
  });

  it("takes the word of the seed's own runner under another name and by date", async () => {
    const host = makeControlHost();
    host.propose();
    await host.reeve('action', 'approve', actionId, '--yes');
    await host.reeve('action', 'dispatch');
    host.age(actionId, 5);
    const today = new Date().toISOString().slice(0, 10);
    host.write(
      `homelab/events/${today}/web-1/evt-web-1-1780000000-action_result-7c9e.json`,
      aResult().content,
    );
    await host.reeve('action', 'settle');
    expect(host.statesOf(actionId)).toStrictEqual(['completed']);
  });
});
