import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readRegistryCredentials } from '../../../src/lib/docker/credentials.ts';
import { ConfigError } from '../../../src/lib/errors.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'reeve-auth-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

function write(content: unknown, mode = 0o600): void {
  const path = join(dir, 'config.json');
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  chmodSync(path, mode);
}

function decode(registry: string): unknown {
  const header = readRegistryCredentials(dir, registry)?.header;
  if (header === undefined) return undefined;
  expect(header).toMatch(/^[A-Za-z0-9_-]+=*$/);
  expect(header.length % 4).toBe(0);
  return JSON.parse(Buffer.from(header, 'base64url').toString());
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

describe('registry credentials', () => {
  it('are those of the registry named, however its key is written', () => {
    write({
      auths: {
        'registry.example': { auth: base64('a:b:c') },
        'https://other.example:5000/v2/': { username: 'u', password: 'pässword??>>' },
        'https://index.docker.io/v1/': { auth: base64('hub:secret') },
        'token.example': { identitytoken: 'token' },
      },
    });
    expect(decode('registry.example')).toEqual({
      username: 'a',
      password: 'b:c',
      serveraddress: 'registry.example',
    });
    expect(decode('other.example:5000')).toEqual({
      username: 'u',
      password: 'pässword??>>',
      serveraddress: 'other.example:5000',
    });
    expect(decode('docker.io')).toEqual({
      username: 'hub',
      password: 'secret',
      serveraddress: 'https://index.docker.io/v1/',
    });
    expect(decode('token.example')).toEqual({ identitytoken: 'token', serveraddress: 'token.example' });
    expect(decode('registry.example:5000')).toBeUndefined();
    expect(readRegistryCredentials(dir, 'registry.example')?.secrets).toEqual(['b:c', base64('a:b:c')]);
  });

  it('are none where the file is missing', () => {
    expect(decode('registry.example')).toBeUndefined();
    expect(readRegistryCredentials(join(dir, 'missing'), 'registry.example')).toBeUndefined();
  });

  it.each([[0o644], [0o640], [0o604], [0o660]])('are refused from a file of mode %o', (mode) => {
    write({ auths: { 'registry.example': { auth: base64('a:b') } } }, mode);
    expect(() => readRegistryCredentials(dir, 'registry.example')).toThrow(
      new ConfigError(
        `cannot use "${dir}/config.json": others than its owner may read it (mode 0${mode.toString(8)}); chmod 600 it`,
      ),
    );
  });

  it('are refused from a broken file without quoting it', () => {
    write('{"auths": {"registry.example": {"auth": "aHVzaA==" ');
    const attempt = () => readRegistryCredentials(dir, 'registry.example');
    expect(attempt).toThrow(new ConfigError(`cannot read "${dir}/config.json": it is not JSON`));
    expect(attempt).not.toThrow(/aHVzaA/);
  });

  it('are refused where an entry is empty or another program would have to be run', () => {
    write({ auths: { 'registry.example': {} }, credHelpers: { 'helped.example': 'pass' } });
    expect(() => readRegistryCredentials(dir, 'registry.example')).toThrow(ConfigError);
    expect(() => readRegistryCredentials(dir, 'helped.example')).toThrow(ConfigError);
  });
});
