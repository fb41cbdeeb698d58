// What a pull with nothing new costs, beside the same rsync by hand: measured in turn, over a real sshd.
import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { buildPullArgs } from '../../../src/lib/rsync/args.ts';
import { findRemoteShell } from '../../../src/lib/rsync/run.ts';
import { makePullingNode } from '../../support/pulling-node.ts';
import { startSshd } from '../../support/sshd.ts';
import { tellFigure } from '../../support/system.ts';
import { makeTempDir } from '../../support/temp.ts';
import { measureInTurn } from '../../support/timing.ts';

// Other work on the machine spoils a measurement now and then.
it('a pull with nothing new takes at most three times the same rsync by hand', { retry: 2 }, async () => {
  const node = makePullingNode(await startSshd());
  for (let count = 0; count < 20; count += 1)
    node.approve(`redeploy-web-1-s${count}`, { service: `s${count}` });
  expect((await node.pull()).status).toBe(0);
  const configFile = join(node.root, 'etc/reeve.yaml');
  const remoteShell = (await findRemoteShell({ paths: { configFile } }, node.far.pull, 'pull')) ?? '';
  const args = buildPullArgs({ remoteShell, from: node.far.pull, to: makeTempDir(), maxFileBytes: 65_536 });
  const env = {
    HOME: node.root,
    REEVE_CONFIG: configFile,
    REEVE_STATE: node.stateDir,
    REEVE_RUN: join(node.root, 'run'),
    REEVE_CACHE: join(node.root, 'cache'),
  };
  const { pull, hand } = await measureInTurn(15, {
    pull: { argv: [inject('reeveBin'), 'rsync-pull'], env },
    hand: { argv: ['rsync', ...args], env: { HOME: node.root } },
  });
  const times = pull / hand;
  tellFigure(
    `a pull with nothing new takes ${Math.round(pull)} ms, the same rsync by hand ${Math.round(hand)} ms: ${times.toFixed(2)} times`,
  );
  expect(times).toBeLessThanOrEqual(3);
});
