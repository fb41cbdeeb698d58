import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Entry, readEntry } from '../../../src/lib/actions/entry.ts';
import { listEntries } from '../../../src/lib/actions/open.ts';
import { markerKeyPattern } from '../../../src/lib/deploy-runner/key.ts';
import { makeTempDir } from '../../support/temp.ts';

const anAction = (id: string): string =>
  JSON.stringify({ action_id: id, type: 'redeploy', node: 'vps', service: 'web' });

async function readAll(directory: string, most = 100): Promise<(Entry | undefined)[]> {
  const { names } = await listEntries(directory, most);
  return await Promise.all(names.map(readEntry));
}

async function readOnly(directory: string): Promise<Record<string, unknown>> {
  const entries = await readAll(directory);
  expect(entries).toHaveLength(1);
  const { name: _, ...entry } = entries[0] as Entry;
  return entry;
}

describe('an entry of the inbox', () => {
  it('is an action where it is a file of its id', async () => {
    const directory = makeTempDir();
    writeFileSync(join(directory, 'redeploy-vps-web.json'), anAction('redeploy-vps-web'));
    expect(await readOnly(directory)).toMatchObject({
      kind: 'action',
      action: { actionId: 'redeploy-vps-web', service: 'web' },
      key: expect.stringMatching(markerKeyPattern),
    });
  });

  const kinds: [string, (path: string, canary: string) => unknown, string][] = [
    ['a link to a file outside', (path, canary) => symlinkSync(canary, path), 'it is a symbolic link'],
    ['a link that climbs', (path) => symlinkSync('../../../etc/passwd', path), 'it is a symbolic link'],
    ['a link to nowhere', (path) => symlinkSync('/nowhere', path), 'it is a symbolic link'],
    ['a link to itself', (path) => symlinkSync(path, path), 'it is a symbolic link'],
    ['a pipe', (path) => execFileSync('mkfifo', [path]), 'it is a pipe'],
    ['a device', (path) => execFileSync('mknod', [path, 'c', '1', '5']), 'it is a device'],
    ['a directory', (path) => mkdirSync(path), 'it is a directory'],
    [
      'a socket',
      async (path) => {
        const server = createServer();
        onTestFinished(() => void server.close());
        await new Promise<void>((resolve) => {
          server.listen(path, resolve);
        });
      },
      'it is a socket',
    ],
    [
      'a file of 50 MB',
      (path) => {
        writeFileSync(path, '{');
        truncateSync(path, 50 * 1024 * 1024);
      },
      'it is larger than 65536 bytes',
    ],
  ];

  it.each(kinds)('is refused, and not read, where it is %s (D46, O68)', async (_, make, reason) => {
    const directory = makeTempDir();
    const canary = join(makeTempDir(), 'canary.json');
    writeFileSync(canary, anAction('a'));
    await make(join(directory, 'a.json'), canary);
    expect(await readOnly(directory)).toStrictEqual({
      ...{ kind: 'refused', actionId: 'a', reason },
      key: expect.stringMatching(markerKeyPattern),
    });
  });

  it.each<[string, string, string]>([
    ['another id', anAction('b'), 'action_id is "b", unlike the name of its file'],
    ['no JSON', '{"action_id": "a"', 'invalid action: it is not whole JSON'],
    ['nothing', '', 'invalid action: it is not whole JSON'],
    [
      'a service that climbs',
      anAction('a').replace('web', '../x'),
      'invalid action: service is no kebab-case name',
    ],
  ])('is refused with its reason where it has %s (D45, D46)', async (_, text, reason) => {
    const directory = makeTempDir();
    writeFileSync(join(directory, 'a.json'), text);
    expect(await readOnly(directory)).toMatchObject({ kind: 'refused', actionId: 'a', reason });
  });

  it('of a damaged file has the same key each time, and another one when it is mended (D42)', async () => {
    const directory = makeTempDir();
    writeFileSync(join(directory, 'a.json'), '{');
    const first = await readOnly(directory);
    writeFileSync(join(directory, 'a.json'), '{');
    expect(await readOnly(directory)).toEqual(first);
    writeFileSync(join(directory, 'a.json'), '{ ');
    expect((await readOnly(directory))['key']).not.toBe(first['key']);
  });

  it.each([
    ['.part'],
    ['.~tmp~'],
    ['.a.json.Ab12xY'],
    ['a.json.tmp'],
    ['A.json'],
    ['a.json\n'],
    ['-rf.json'],
    ['a b.json'],
    ['а.json'],
    ['\u202eexe.json'],
    [`${'a'.repeat(200)}.json`],
    ['..json'],
    ['*.json'],
    ['$(reboot).json'],
  ])('is nobody’s action by the name %j (D46, O64)', async (name) => {
    const directory = makeTempDir();
    writeFileSync(join(directory, name), anAction('a'));
    expect(await readOnly(directory)).toEqual({ kind: 'foreign', reason: "its name is no action's" });
  });

  it('is found under a name that is no text, by its bytes', async () => {
    const directory = makeTempDir();
    const name = Buffer.from([0x61, 0xff, 0xfe, 0x2e, 0x6a]);
    writeFileSync(Buffer.concat([Buffer.from(`${directory}/`), name]), 'x');
    const { names } = await listEntries(directory, 10);
    expect(names.map(({ path }) => path.subarray(directory.length + 1))).toEqual([name]);
  });

  it('that has gone is none', async () => {
    const directory = makeTempDir();
    writeFileSync(join(directory, 'a.json'), anAction('a'));
    const { names } = await listEntries(directory, 10);
    execFileSync('rm', [join(directory, 'a.json')]);
    expect(await readEntry(names[0] as (typeof names)[number])).toBeUndefined();
  });
});

describe('listEntries', () => {
  it('reads no more names than it is told, and says so', async () => {
    const directory = makeTempDir();
    for (let count = 0; count < 30; count += 1) writeFileSync(join(directory, `a-${count}.json`), '');
    expect(await listEntries(directory, 30)).toMatchObject({ isCut: false });
    const cut = await listEntries(directory, 29);
    expect([cut.isCut, cut.names.length]).toEqual([true, 29]);
    expect(await listEntries(join(directory, 'none'), 5)).toEqual({ names: [], isCut: false });
  });

  it('gives names in the order of their bytes', async () => {
    const directory = makeTempDir();
    for (const name of ['b.json', 'ä.json', 'a.json', 'B.json']) writeFileSync(join(directory, name), '');
    const { names } = await listEntries(directory, 10);
    expect(names.map(({ text }) => text)).toEqual(['B.json', 'a.json', 'b.json', 'ä.json']);
  });
});
