import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { bucketRule } from '../../../src/lib/store/bucket-url.ts';
import { openFileStore } from '../../../src/lib/store/file.ts';
import { openStore } from '../../../src/lib/store/open.ts';
import { programPath } from '../../support/programs.ts';
import { describeStoreContract, failingAfter } from '../../support/store-contract.ts';
import { makeTempDir } from '../../support/temp.ts';

describeStoreContract('a directory', () => ({ store: pathToFileURL(makeTempDir()).href }));

describe('a directory store', () => {
  it('has exactly the keys as paths, readable by the owner only', async () => {
    const root = makeTempDir();
    await openFileStore(root).put('nodes/web-1/desired.json', 'text');
    const path = join(root, 'nodes', 'web-1', 'desired.json');
    expect(readFileSync(path, 'utf8')).toBe('text');
    expect(statSync(path).mode & 0o7777).toBe(0o600);
    expect(readdirSync(join(root, 'nodes', 'web-1'))).toEqual(['desired.json']);
  });

  it('ends a read where it is interrupted (R59)', async () => {
    const root = makeTempDir();
    writeFileSync(join(root, 'large'), Buffer.alloc(1024 * 1024));
    const controller = new AbortController();
    const chunks = await openFileStore(root, { signal: controller.signal }).getStream('large');
    const read = async (): Promise<void> => {
      for await (const _ of chunks ?? []) controller.abort();
    };
    await expect(read()).rejects.toMatchObject({
      ...{ name: 'UnavailableError', code: 'INTERRUPTED' },
      message: `cannot read "large" in store "${root}": interrupted`,
    });
  });

  it('gives a document that was edited by hand its true etag', async () => {
    const root = makeTempDir();
    const store = openFileStore(root);
    const { etag } = await store.put('a.json', 'one');
    writeFileSync(join(root, 'a.json'), 'two');
    await expect(store.put('a.json', 'three', { ifMatch: etag })).rejects.toMatchObject({
      code: 'precondition',
    });
    writeFileSync(join(root, 'a.json'), 'one');
    await store.put('a.json', 'three', { ifMatch: etag });
    expect((await store.get('a.json'))?.text).toBe('three');
  });

  it('is unavailable, and not empty, when its directory is missing', async () => {
    const root = join(makeTempDir(), 'not-mounted');
    const store = openFileStore(root);
    const message = `cannot use store "${root}": there is no such directory: is it mounted? (cluster.store)`;
    const operations = [
      store.get('a'),
      store.put('a', 'x'),
      store.list(''),
      store.delete('a'),
      store.head('a'),
      store.getStream('a'),
      store.putStream('a', failingAfter(0, new Error('never read'))),
    ];
    for (const result of await Promise.allSettled(operations)) {
      expect(result).toMatchObject({
        status: 'rejected',
        reason: { name: 'UnavailableError', message, exitCode: 69 },
      });
    }
    expect(readdirSync(join(root, '..'))).toEqual([]);
    const backups = openFileStore(root, { setting: 'backup.bucket' });
    await expect(backups.list('')).rejects.toThrow('is it mounted? (backup.bucket)');
  });

  it('is unavailable to a user who may not read it', () => {
    const root = makeTempDir();
    const script = `import(${JSON.stringify(programPath('../../../src/lib/store/file.ts'))}).then((m) => m.openFileStore(${JSON.stringify(root)}).get('a.json')).catch((e) => console.log(e.name, e.message))`;
    const { stdout } = spawnSync(process.execPath, ['-e', script], {
      encoding: 'utf8',
      uid: 65534,
      gid: 65534,
    });
    expect(stdout).toBe(
      `UnavailableError cannot read "a.json" in store "${root}": EACCES: permission denied\n`,
    );
  });

  it('refuses to read a document of more than 64 MB into memory', async () => {
    const root = makeTempDir();
    const store = openFileStore(root);
    await store.putStream('large', bytesOf(64 * 1024 * 1024 + 1));
    await expect(store.get('large')).rejects.toMatchObject({
      name: 'InputError',
      message: 'cannot read "large" as a document: it has 67108865 bytes',
    });
    expect((await store.head('large'))?.sizeBytes).toBe(67_108_865);
  });

  it('does not follow a symbolic link out of itself', async () => {
    const root = makeTempDir();
    symlinkSync('/etc/hostname', join(root, 'link'));
    const store = openFileStore(root);
    await expect(store.get('link')).rejects.toMatchObject({ name: 'UnavailableError', code: 'ELOOP' });
    await expect(store.put('link', 'x')).rejects.toMatchObject({ name: 'ConfigError', code: 'not-a-file' });
    expect(await store.list('')).toEqual([]);
  });

  it('has nothing under the name of a directory', async () => {
    const root = makeTempDir();
    mkdirSync(join(root, 'nodes'));
    const store = openFileStore(root);
    expect(await store.get('nodes')).toBeUndefined();
    await expect(store.put('nodes', 'x')).rejects.toMatchObject({ name: 'ConfigError' });
  });

  it('takes a hundred concurrent puts of one process', async () => {
    const store = openFileStore(makeTempDir());
    await Promise.all(Array.from({ length: 100 }, (_, index) => store.put(`n/${index}.json`, `${index}`)));
    expect(await store.list('n/')).toHaveLength(100);
  });
});

describe('openStore', () => {
  it('opens a directory by its URL, decoded', async () => {
    const root = join(makeTempDir(), 'a b');
    mkdirSync(root);
    const store = await openStore({ store: pathToFileURL(root).href });
    await store.put('x', 'text');
    expect([readFileSync(join(root, 'x'), 'utf8'), store.url]).toEqual(['text', pathToFileURL(root).href]);
  });

  it.each([
    ['/var/lib/store', 'it is not a URL; a store is file:///directory or s3://bucket[/prefix]'],
    ['file://host/var/lib', 'it names a host; write file:///directory with three slashes'],
    ['file:///var?x=1', 'a directory has no query and no fragment'],
    ['http://example.com', 'a store is file:///directory or s3://bucket[/prefix]'],
    ['s3://B', bucketRule],
    [
      's3://bucket/a//b',
      'no part of its prefix is empty, begins with a dot, or is longer than a name may be',
    ],
    ['s3://bucket?x=1', 'a bucket has no user, no query, no fragment and no blank'],
  ])('refuses %s', async (url, cause) => {
    await expect(openStore({ store: url })).rejects.toMatchObject({
      name: 'ConfigError',
      message: `cannot open store ${JSON.stringify(url)}: ${cause}`,
    });
  });
});

async function* bytesOf(sizeBytes: number): AsyncGenerator<Uint8Array> {
  const chunk = Buffer.alloc(1024 * 1024, 7);
  for (let sent = 0; sent < sizeBytes; sent += chunk.length) yield chunk.subarray(0, sizeBytes - sent);
}
