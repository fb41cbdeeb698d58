import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { secretPath } from '../../../src/lib/secrets/file.ts';
import { mergeEnv, openSecrets } from '../../../src/lib/secrets/secrets.ts';

async function createSecrets(files: Record<string, string | Uint8Array> = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'reeve-secrets-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), content, { mode: 0o600 });
  }
  const source = await openSecrets(pathToFileURL(directory).href, { clusterId: 'prod', region: 'local' });
  return { directory, source };
}

const ref = (key: string): { name: string; ssm: string } => ({
  name: key,
  ssm: `/launch-pad/prod/blog/web/${key}`,
});

describe('file secrets', () => {
  it('gives the value of each reference, by name (L139)', async () => {
    const { source } = await createSecrets({ 'blog/web/A': 'one\n', 'shared/b': 'two' });
    expect(await source.resolve([ref('A'), { name: 'B', ssm: '/shared/b' }])).toEqual({ A: 'one', B: 'two' });
  });

  it.each([
    ['one line break is not part of the value', 'x\n', 'x'],
    ['of two, one is', 'x\n\n', 'x\n'],
    ['a carriage return is', 'x\r\n', 'x\r'],
    ['blanks are', ' x \t', ' x \t'],
    ['a value may be empty', '', ''],
    ['a value may have lines', 'a\nb\n', 'a\nb'],
    ['a value may have quotes, dollars and other alphabets', `"'$X=\\ ü€😀`, `"'$X=\\ ü€😀`],
    ['a byte order mark is kept', '\ufeffx', '\ufeffx'],
  ])('byte for byte: %s', async (_title, content, value) => {
    const { source } = await createSecrets({ 'blog/web/KEY': content });
    expect(await source.resolve([ref('KEY')])).toEqual({ KEY: value });
  });

  it('needs nothing where there are no references', async () => {
    const { source } = await createSecrets();
    expect(await source.resolve([])).toEqual({});
  });

  it('names all that are missing in one error', async () => {
    const { directory, source } = await createSecrets({ 'blog/web/A': 'geheim' });
    await expect(source.resolve([ref('A'), ref('B'), { name: 'C', ssm: '/c' }])).rejects.toMatchObject({
      exitCode: 1,
      code: 'secrets',
      message: `cannot resolve secrets: B is missing: there is no ${directory}/blog/web/B; C is missing: there is no ${directory}/c`,
    });
  });

  it.each([0o640, 0o604, 0o620])('refuses a file of mode %o with the remedy (O53)', async (mode) => {
    const { directory, source } = await createSecrets({ 'blog/web/A': 'geheim' });
    await chmod(join(directory, 'blog/web/A'), mode);
    await expect(source.resolve([ref('A')])).rejects.toThrow(
      `cannot resolve secrets: A can be read by others: chmod 600 ${directory}/blog/web/A`,
    );
  });

  it('refuses what is no regular file, without waiting for a pipe', async () => {
    const { directory, source } = await createSecrets({ target: 'geheim', 'dir/x': '' });
    await symlink('target', join(directory, 'link'));
    execFileSync('/usr/bin/mkfifo', ['-m', '600', join(directory, 'pipe')]);
    const refs = ['link', 'dir', 'pipe'].map((name) => ({ name: name.toUpperCase(), ssm: `/${name}` }));
    await expect(source.resolve(refs)).rejects.toThrow(
      `cannot resolve secrets: LINK in ${directory}/link is not a regular file; DIR in ${directory}/dir is not a regular file; PIPE in ${directory}/pipe is not a regular file`,
    );
  });

  it.each([
    ['larger than 1 MiB', Buffer.alloc(1024 * 1024 + 1, 'x'), 'is larger than 1 MiB'],
    ['no text', Buffer.from([0xc3, 0x28]), 'is not UTF-8 text'],
    ['with a NUL', 'geheim\0', 'has a NUL, which no environment can carry'],
  ])('refuses a value %s, without quoting it', async (_title, content, fault) => {
    const { directory, source } = await createSecrets({ 'blog/web/A': content });
    await expect(source.resolve([ref('A')])).rejects.toThrow(
      `cannot resolve secrets: A in ${directory}/blog/web/A ${fault}`,
    );
  });

  it('takes a value of exactly 1 MiB', async () => {
    const { source } = await createSecrets({ 'blog/web/A': 'x'.repeat(1024 * 1024) });
    expect((await source.resolve([ref('A')]))['A']).toHaveLength(1024 * 1024);
  });
});

describe('secretPath', () => {
  it.each([
    ['/launch-pad/prod/blog/web/KEY', '/s/blog/web/KEY'],
    ['/launch-pad/other/blog/web/KEY', '/s/launch-pad/other/blog/web/KEY'],
    ['/launch-pad/prod/blog/KEY', '/s/launch-pad/prod/blog/KEY'],
    ['/shared/db.url', '/s/shared/db.url'],
    ['shared', '/s/shared'],
    ['/../etc/shadow', undefined],
    ['/launch-pad/prod/../../x', undefined],
    ['/a//b', undefined],
    ['/a/.', undefined],
    ['/', undefined],
    ['', undefined],
    ['/a/b\0', undefined],
    ['/a b', undefined],
  ])('of %j is %s', (ssm, path) => {
    expect(secretPath('/s', 'prod', ssm)).toBe(path);
  });

  it('refuses a path that leads elsewhere, by name', async () => {
    const { source } = await createSecrets();
    await expect(source.resolve([{ name: 'A', ssm: '/../etc/shadow' }])).rejects.toThrow(
      'cannot resolve secrets: A has the path "/../etc/shadow"',
    );
  });
});

describe('openSecrets', () => {
  it.each(['http://x', 'file://host/x', '/etc/secrets', 'ssm://x'])('refuses %s', async (url) => {
    await expect(openSecrets(url, { clusterId: 'c', region: 'local' })).rejects.toMatchObject({
      exitCode: 78,
    });
  });
});

describe('mergeEnv', () => {
  it('lets the plain environment win (L140)', () => {
    expect(mergeEnv({ A: 'plain', B: 'b' }, { A: 'secret', C: 'c' })).toEqual({ A: 'plain', B: 'b', C: 'c' });
  });
});
