import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { isHaproxyInstalled } from '../../../src/lib/haproxy/binary.ts';
import { makeTempDir } from '../../support/temp.ts';

it('finds HAProxy on the PATH, and where Debian puts it although no PATH leads there', async () => {
  const directory = makeTempDir();
  const isAtHome = existsSync('/usr/sbin/haproxy');
  expect(await isHaproxyInstalled('')).toBe(isAtHome);
  mkdirSync(join(directory, 'bin'));
  const program = join(directory, 'bin/haproxy');
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o644 });
  expect(await isHaproxyInstalled(join(directory, 'bin'))).toBe(isAtHome);
  chmodSync(program, 0o755);
  expect(await isHaproxyInstalled(`/nowhere:${join(directory, 'bin')}`)).toBe(true);
});
