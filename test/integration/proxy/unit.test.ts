// What the proxy's unit does in shell, on directories of its own: with nothing of ours to run.
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { startProcess } from '../../support/programs.ts';
import { makeTempDir } from '../../support/temp.ts';

const unit = readFileSync(resolve(import.meta.dirname, '../../../systemd/reeve-proxy.service'), 'utf8');

/** The first of its steps, below another directory than /run. */
async function startPre(root: string): Promise<void> {
  const [, script = ''] = /^ExecStartPre=\+\/bin\/sh -c '([^']+)'$/m.exec(unit) ?? [];
  const moved = script.replaceAll('/run/', `${root}/`);
  const { status, stderr } = await startProcess('/bin/sh', ['-c', moved]).ended;
  expect([status, stderr]).toEqual([0, '']);
}

it.each([
  ['on', 'drain on\n', 'drain off\n'],
  ['off', 'drain off\n', 'drain off\n'],
])('a start of the proxy ends the drain before by itself: %s', async (_, before, after) => {
  const root = makeTempDir();
  mkdirSync(`${root}/reeve/locks`, { recursive: true });
  await startPre(root);
  const flags = `${root}/reeve/proxy/flags.map`;
  // A first start has none, and gets it from `proxy sync --write-only`, which knows its mode.
  expect(() => statSync(flags)).toThrow('ENOENT');
  writeFileSync(flags, before);
  chmodSync(flags, 0o644);
  await startPre(root);
  expect([readFileSync(flags, 'utf8'), statSync(flags).mode & 0o777]).toEqual([after, 0o644]);
});
