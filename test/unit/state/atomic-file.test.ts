import {
  chmod,
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ConfigError } from '../../../src/lib/errors.ts';
import { stageStream, writeFileAtomic } from '../../../src/lib/state/atomic-file.ts';
import { newStagingPath } from '../../../src/lib/state/staging.ts';
import { makeTempDir } from '../../support/temp.ts';

describe('writeFileAtomic', () => {
  it('makes the directories and the file', async () => {
    const path = join(makeTempDir(), 'jobs', 'a', 'claim.json');
    await writeFileAtomic(path, 'text\n');
    expect(await readFile(path, 'utf8')).toBe('text\n');
  });

  it.each([0, 0o022, 0o777])('gives a file mode 0600 under umask %i (O63)', async (umask) => {
    const path = join(makeTempDir(), 'state.json');
    setUmask(umask);
    await writeFileAtomic(path, 'secret\n');
    expect((await stat(path)).mode & 0o7777).toBe(0o600);
  });

  it('tightens the mode of a file that it replaces (O63)', async () => {
    const path = join(makeTempDir(), 'state.json');
    await writeFile(path, 'old\n');
    await chmod(path, 0o644);
    await writeFileAtomic(path, 'new\n');
    expect((await stat(path)).mode & 0o7777).toBe(0o600);
  });

  it('keeps the content that it replaces, one generation', async () => {
    const path = join(makeTempDir(), 'state.json');
    for (const text of ['one\n', 'two\n', 'three\n'])
      await writeFileAtomic(path, text, { keepPrevious: true });
    expect(await readTree(join(path, '..'))).toEqual({
      'state.json': 'three\n',
      'state.json.previous': 'two\n',
    });
  });

  it('keeps the previous copy also where both names are already links to one file (R55)', async () => {
    const path = join(makeTempDir(), 'state.json');
    await writeFile(path, 'one\n');
    await link(path, `${path}.previous`);
    await writeFileAtomic(path, 'two\n', { keepPrevious: true });
    expect(await readTree(join(path, '..'))).toEqual({
      'state.json': 'two\n',
      'state.json.previous': 'one\n',
    });
  });

  it.each([
    ['empty', ''],
    ['NULs', '\0'.repeat(100)],
    ['cut', '{"version":1,'],
  ])('does not let a damaged file (%s) push out the good previous copy (R55)', async (_, damage) => {
    const path = join(makeTempDir(), 'state.json');
    await writeFileAtomic(path, 'one\n');
    await writeFileAtomic(path, 'two\n', { keepPrevious: true });
    await writeFile(path, damage);
    await writeFileAtomic(path, 'three\n', { keepPrevious: true });
    expect(await readTree(join(path, '..'))).toEqual({
      'state.json': 'three\n',
      'state.json.previous': 'one\n',
    });
  });

  it('writes bytes as they are', async () => {
    const path = join(makeTempDir(), 'blob');
    const bytes = Uint8Array.from({ length: 70_000 }, (_, index) => index % 256);
    await writeFileAtomic(path, bytes.subarray(10));
    expect(new Uint8Array(await readFile(path))).toEqual(bytes.subarray(10));
  });

  it('refuses a symbolic link and leaves what it points to alone', async () => {
    const directory = makeTempDir();
    await writeFile(join(directory, 'elsewhere'), 'theirs');
    await symlink('elsewhere', join(directory, 'state.json'));
    const path = join(directory, 'state.json');
    await expect(writeFileAtomic(path, 'ours')).rejects.toEqual(
      new ConfigError(`cannot write "${path}": it is a symbolic link`, { code: 'not-a-file' }),
    );
    expect((await lstat(path)).isSymbolicLink()).toBe(true);
    expect(await readTree(directory)).toEqual({ elsewhere: 'theirs', 'state.json': 'theirs' });
  });

  it('refuses a directory under the name of a file', async () => {
    const path = join(makeTempDir(), 'state.json');
    await mkdir(path);
    await expect(writeFileAtomic(path, 'ours')).rejects.toThrow(
      `cannot write "${path}": it is not a regular file`,
    );
  });

  it('does not touch temporary files of others and does not reuse them (O63)', async () => {
    const directory = makeTempDir();
    const theirs = ['state.json.123456', '.state.json.tmp', '.reeve-notes.tmp'];
    for (const name of theirs) await writeFile(join(directory, name), 'theirs');
    await writeFileAtomic(join(directory, 'state.json'), 'ours\n');
    expect(await readTree(directory)).toEqual({
      ...Object.fromEntries(theirs.map((name) => [name, 'theirs'])),
      'state.json': 'ours\n',
    });
  });

  it('sweeps what a killed process has left, and nothing of a live one (O55)', async () => {
    const directory = makeTempDir();
    const ours = newStagingPath(directory);
    const host = /\/\.reeve-([0-9a-f]{8})-/.exec(ours)?.[1];
    const names = {
      mine: ours.slice(directory.length + 1),
      predecessor: `.reeve-${host}-${process.pid}-aaaaaaaaaaaa.tmp`,
      dead: `.reeve-${host}-4194999-bbbbbbbbbbbb.tmp.123456`,
      alive: `.reeve-${host}-1-cccccccccccc.tmp`,
      otherHost: '.reeve-00000000-4194999-dddddddddddd.tmp',
      otherHostOld: '.reeve-00000000-4194999-eeeeeeeeeeee.tmp',
    };
    for (const name of Object.values(names)) await writeFile(join(directory, name), 'part');
    await utimes(join(directory, names.otherHostOld), 0, 0);
    await writeFileAtomic(join(directory, 'state.json'), 'new\n');
    expect((await readdir(directory)).sort()).toEqual(
      [names.alive, names.mine, names.otherHost, 'state.json'].sort(),
    );
  });

  it('lets concurrent writers of one process each win whole (L38)', async () => {
    const path = join(makeTempDir(), 'state.json');
    const bodies = Array.from({ length: 20 }, (_, index) => `${String(index).repeat(5000)}\n`);
    await Promise.all(bodies.map((body) => writeFileAtomic(path, body, { keepPrevious: true })));
    expect(bodies).toContain(await readFile(path, 'utf8'));
    expect((await readdir(join(path, '..'))).sort()).toEqual(['state.json', 'state.json.previous']);
  });
});

describe('stageStream', () => {
  it('throws the source error as it is and leaves nothing', async () => {
    const directory = makeTempDir();
    const fault = new Error('dump failed');
    await expect(stageStream(join(directory, 'dump.gz'), failingSource(fault))).rejects.toBe(fault);
    expect(await readdir(directory)).toEqual([]);
  });
});

async function* failingSource(error: Error): AsyncGenerator<Uint8Array> {
  yield Buffer.from('some bytes');
  throw error;
}

function setUmask(umask: number): void {
  const before = process.umask(umask);
  onTestFinished(() => void process.umask(before));
}

async function readTree(directory: string): Promise<Record<string, string>> {
  const names = (await readdir(directory)).sort();
  return Object.fromEntries(
    await Promise.all(
      names.map(async (name) => [name, await readFile(join(directory, name), 'utf8')] as const),
    ),
  );
}
