// Real short writes: a disk that is full in the middle of a file, and a limit on the size of files (O55).
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { writeFileAtomic } from '../../../src/lib/state/atomic-file.ts';
import { ensureDirectory } from '../../../src/lib/state/directory.ts';
import { appendHistory, readHistory } from '../../../src/lib/state/history.ts';
import { openFileStore } from '../../../src/lib/store/file.ts';
import { anEvent } from '../../support/fault-cases.ts';
import { programPath } from '../../support/programs.ts';
import { streamOf } from '../../support/store-contract.ts';
import { makeTempDir } from '../../support/temp.ts';

const old = `${'good\n'.repeat(2000)}`;
const tooLarge = `${'x'.repeat(200_007)}\n`;

describe('on a disk of 128 KiB', () => {
  it('a state file of 200 KB is refused, the old one is byte-identical and no staging file is left (O55)', async () => {
    const directory = mountSmallDisk();
    const path = join(directory, 'state.json');
    await writeFileAtomic(path, old);
    await expect(writeFileAtomic(path, tooLarge, { keepPrevious: true })).rejects.toMatchObject({
      name: 'StepError',
      code: 'ENOSPC',
      message: expect.stringMatching(
        /^cannot write ".*\/state\.json": ENOSPC: only \d+ of 200008 bytes could be written$/,
      ),
    });
    expect(readFileSync(path, 'utf8')).toBe(old);
    expect(readdirSync(directory)).toEqual(['state.json']);
    await writeFileAtomic(path, 'next\n');
    expect(readFileSync(path, 'utf8')).toBe('next\n');
  });

  it('an object of a store is refused, put or streamed, and the old one stays (O55, O16)', async () => {
    const directory = mountSmallDisk();
    const store = openFileStore(directory);
    await store.put('a', old);
    await expect(store.put('a', tooLarge)).rejects.toMatchObject({ code: 'ENOSPC' });
    await expect(store.putStream('a', streamOf([Buffer.from(tooLarge)]))).rejects.toMatchObject({
      code: 'ENOSPC',
    });
    expect((await store.get('a'))?.text).toBe(old);
    expect(readdirSync(directory).sort()).toEqual(['.locks', 'a']);
  });

  it('the history keeps its whole lines and goes on when there is space again', async () => {
    const stateDir = mountSmallDisk();
    await appendHistory({ stateDir }, [anEvent('first')]);
    const batch = Array.from({ length: 100 }, () => anEvent('many', { error: 'x'.repeat(2000) }));
    await expect(appendHistory({ stateDir }, batch)).rejects.toMatchObject({ name: 'StepError' });
    const whole = await readHistory({ stateDir });
    expect(whole[0]).toEqual(anEvent('first'));
    const kept = readFileSync(join(stateDir, 'history.ndjson')).subarray(0, 60_000);
    writeFileSync(join(stateDir, 'history.ndjson'), kept);
    await appendHistory({ stateDir }, [anEvent('last')]);
    const events = await readHistory({ stateDir });
    expect([events[0], events.at(-1)]).toEqual([anEvent('first'), anEvent('last')]);
  });
});

describe('on a disk that is read-only', () => {
  it('a key whose directories are missing is refused as that, and not as missing', async () => {
    const directory = mountSmallDisk();
    execFileSync('mount', ['-o', 'remount,ro', directory]);
    await expect(ensureDirectory(join(directory, 'shop', 'db'))).rejects.toMatchObject({ code: 'EROFS' });
    const store = openFileStore(directory);
    await expect(store.putStream('shop/db/a', streamOf([Buffer.from('x')]))).rejects.toMatchObject({
      message: expect.stringContaining('EROFS: read-only file system'),
    });
  });
});

describe('under a limit on the size of files', () => {
  it('a larger state file is refused and the old one is byte-identical (O55)', async () => {
    const directory = makeTempDir();
    await writeFileAtomic(join(directory, 'state.json'), old);
    const script = `
      const { writeFileAtomic } = await import(${JSON.stringify(programPath('../../../src/lib/state/atomic-file.ts'))});
      await writeFileAtomic(${JSON.stringify(join(directory, 'state.json'))}, 'x'.repeat(200_008)).catch((e) => console.log(e.message));`;
    const limited = [
      '-c',
      'ulimit -f 64; exec "$0" "$@"',
      process.execPath,
      '--input-type=module',
      '-e',
      script,
    ];
    const { stdout } = spawnSync('bash', limited, { encoding: 'utf8' });
    expect(stdout).toMatch(
      /^cannot write ".*\/state\.json": ENOSPC: only \d+ of 200008 bytes could be written\n$/,
    );
    expect(readFileSync(join(directory, 'state.json'), 'utf8')).toBe(old);
    expect(readdirSync(directory)).toEqual(['state.json']);
  });
});

function mountSmallDisk(): string {
  const directory = makeTempDir();
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=128k,mode=700', 'tmpfs', directory], {
    encoding: 'utf8',
  });
  if (mounted.status !== 0) throw new Error(`cannot mount a small disk: ${mounted.stderr}`);
  onTestFinished(() => void spawnSync('umount', [directory]));
  return directory;
}
