// Which Caddy is installed, and what it knows.
import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  findCaddyBinary,
  knowsCloseDelay,
  parseCaddyVersion,
  readCaddyVersion,
} from '../../../src/lib/caddy/version.ts';
import { makeTempDir } from '../../support/temp.ts';

const signal = new AbortController().signal;

function writeCaddy(path: string, script: string): void {
  rmSync(path, { force: true });
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
}

describe('the version of Caddy', () => {
  it.each([
    ['2.6.2\n', '2.6.2'],
    ['v2.7.6 h1:w0NymbG2m9PcvKWsrXO6EEkY9Ro4FJK8uQbYcev1p3A=\n', '2.7.6'],
    ['v2.7.0-beta.2 h1:x=\n', '2.7.0-beta.2'],
    ['(devel)\n', undefined],
    ['unknown\n', undefined],
    ['', undefined],
  ])('in %j is %s', (output, version) => {
    expect(parseCaddyVersion(output)).toBe(version);
  });

  it.each([
    [undefined, false],
    ['2.6.2', false],
    ['2.7.0-beta.1', false],
    ['2.7.0~rc1', false],
    ['2.7.0', true],
    ['2.7.6', true],
    ['2.10.2', true],
    ['3.0.0', true],
    ['1.20.9', false],
    ['something', false],
  ])('%s says whether tunnels can outlive a change: %s (R44)', (version, knows) => {
    expect(knowsCloseDelay(version)).toBe(knows);
  });

  it('is what the program says, and unknown where it fails', async () => {
    const path = join(makeTempDir(), 'caddy');
    writeCaddy(path, '[ "$1" = version ] && echo "v2.8.4 h1:x="');
    expect(await readCaddyVersion(path, { signal })).toBe('2.8.4');
    writeCaddy(path, 'exit 1');
    expect(await readCaddyVersion(path, { signal })).toBeUndefined();
  });
});

describe('the program', () => {
  it('is found on the search path, through links, and not where it cannot be run', async () => {
    const dir = makeTempDir();
    for (const name of ['a', 'b', 'c']) mkdirSync(join(dir, name));
    writeFileSync(join(dir, 'a/caddy'), 'no program');
    writeCaddy(join(dir, 'c/caddy'), 'exit 0');
    symlinkSync('../c/caddy', join(dir, 'b/caddy'));
    const found = await findCaddyBinary(`${dir}/a::relative:${dir}/b:${dir}/c`);
    expect(found?.path).toBe(`${dir}/b/caddy`);
    expect(found?.stamp).toBe((await findCaddyBinary(`${dir}/c`))?.stamp);
  });

  it('has another stamp once another stands there', async () => {
    const dir = makeTempDir();
    writeCaddy(join(dir, 'caddy'), 'exit 0');
    const before = await findCaddyBinary(dir);
    writeCaddy(join(dir, 'caddy'), 'exit 1 # newer');
    const after = await findCaddyBinary(dir);
    expect(after?.path).toBe(before?.path);
    expect(after?.stamp).not.toBe(before?.stamp);
  });
});
