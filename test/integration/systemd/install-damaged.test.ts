// `scripts/install` below a root where a release that it put there before is no longer what it was.
import {
  appendFileSync,
  cpSync,
  linkSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startProcess } from '../../support/programs.ts';
import { makeTempDir } from '../../support/temp.ts';

const checkout = resolve(import.meta.dirname, '../../..');
const made = realpathSync(mkdtempSync(join(tmpdir(), 'reeve-tree-')));
const tree = join(made, 'tree');

beforeAll(async () => {
  expect(await startProcess(join(checkout, 'scripts/assemble'), [tree]).ended).toMatchObject({ status: 0 });
});
afterAll(() => rmSync(made, { recursive: true, force: true }));

/** Another build of the same version. */
function anotherTree(mark: string): string {
  const other = join(makeTempDir(), 'tree');
  cpSync(tree, other, { recursive: true, filter: (path) => !path.endsWith('/runtime/node') });
  linkSync(join(tree, 'runtime/node'), join(other, 'runtime/node'));
  appendFileSync(join(other, 'CHANGELOG.md'), mark);
  return other;
}

async function install(from: string, root: string): Promise<void> {
  const end = await startProcess(join(from, 'scripts/install'), ['--root', root]).ended;
  expect(end).toMatchObject({ status: 0, stderr: '' });
}

describe('scripts/install', () => {
  it('mends a release that was damaged, as often as that happens', async () => {
    const root = makeTempDir();
    const current = join(root, 'opt/reeve/current');
    await install(tree, root);
    for (const damage of ['1', '2', '3']) {
      appendFileSync(join(current, 'CHANGELOG.md'), damage);
      await install(tree, root);
      expect(readFileSync(join(current, 'CHANGELOG.md'))).toEqual(readFileSync(join(tree, 'CHANGELOG.md')));
    }
  });

  it('keeps the release before where the present one is gone', async () => {
    const root = makeTempDir();
    const opt = join(root, 'opt/reeve');
    await install(tree, root);
    const first = readlinkSync(join(opt, 'current'));
    await install(anotherTree('2'), root);
    rmSync(realpathSync(join(opt, 'current')), { recursive: true });
    await install(anotherTree('3'), root);
    expect(readlinkSync(join(opt, 'previous'))).toBe(first);
    expect(readdirSync(join(opt, 'releases'))).toHaveLength(2);
  });
});
