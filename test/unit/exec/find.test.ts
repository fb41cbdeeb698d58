import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findProgram } from '../../../src/lib/exec/find.ts';
import { makeTempDir } from '../../support/temp.ts';

it('finds the first one that may be run, in absolute directories alone', async () => {
  const root = makeTempDir();
  for (const [name, mode] of [
    ['a', 0o644],
    ['b', 0o755],
    ['c', 0o755],
  ] as const) {
    mkdirSync(join(root, name));
    writeFileSync(join(root, name, 'tool'), '');
    chmodSync(join(root, name, 'tool'), mode);
  }
  const path = `none::.:${root}/missing:${root}/a:${root}/b:${root}/c`;
  expect(await findProgram('tool', path)).toBe(join(root, 'b/tool'));
  expect(await findProgram('other', path)).toBeUndefined();
  expect(await findProgram('tool', '')).toBeUndefined();
});

it('looks where programs of ours are looked for', async () => {
  expect(await findProgram('sh')).toMatch(/\/sh$/);
});
