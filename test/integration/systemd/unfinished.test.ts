// scripts/install after one that was cut short, between any two of its steps.
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { startProcess } from '../../support/programs.ts';
import { makeTempDir } from '../../support/temp.ts';

const scripts = resolve(import.meta.dirname, '../../../scripts');

it('is the first one until one has come to its end, and later ones leave off what somebody has switched off', async () => {
  const tree = join(makeTempDir(), 'tree');
  expect(await startProcess(join(scripts, 'assemble'), [tree]).ended).toMatchObject({ status: 0 });
  const root = makeTempDir();
  const unfinished = join(root, 'opt/reeve/.unfinished');
  const wants = join(root, 'etc/systemd/system/multi-user.target.wants');
  const install = async (): Promise<readonly string[]> => {
    const { status } = await startProcess(join(tree, 'scripts/install'), ['--root', root]).ended;
    expect([status, existsSync(unfinished)]).toEqual([0, false]);
    return readdirSync(wants);
  };
  expect(await install()).toEqual(['reeve.target']);
  rmSync(join(wants, 'reeve.target'));
  expect(await install()).toEqual([]);
  writeFileSync(unfinished, '');
  expect(await install()).toEqual(['reeve.target']);
});
