import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findBootId, requireBootId } from '../../../src/lib/host/boot.ts';
import { makeTempDir } from '../../support/temp.ts';

it('a boot has one mark, whoever asks first, and another one once its directory is empty', async () => {
  const runDir = join(makeTempDir(), 'run');
  expect(await findBootId({ runDir })).toBeUndefined();
  const marks = await Promise.all(Array.from({ length: 20 }, () => requireBootId({ runDir })));
  expect(new Set(marks).size).toBe(1);
  expect(await findBootId({ runDir })).toBe(marks[0]);
  expect(readdirSync(runDir)).toEqual(['boot']);
  rmSync(runDir, { recursive: true });
  expect(await requireBootId({ runDir })).not.toBe(marks[0]);
});

it('a mark that cannot be made is an error, not another boot', async () => {
  const runDir = join(makeTempDir(), 'run');
  writeFileSync(runDir, '');
  await expect(requireBootId({ runDir })).rejects.toThrow(/^cannot (read|write) /);
});
