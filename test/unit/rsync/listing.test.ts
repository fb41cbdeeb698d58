import { expect, it } from 'vitest';
import { parseDetailLine, parseListedLine } from '../../../src/lib/rsync/listing.ts';

it.each([
  ['|>f+++++++++|a.json', { kind: 'file', name: 'a.json' }],
  ['|.f         |b b.json', { kind: 'file', name: 'b b.json' }],
  ['|>fc........|new\\#012line.json', { kind: 'file', name: 'new\\#012line.json' }],
  ['|>f+++++++++|>f+++++++++ fake.json', { kind: 'file', name: '>f+++++++++ fake.json' }],
  ['|>f+++++++++||>f+++++++++|x', { kind: 'file', name: '|>f+++++++++|x' }],
  ['|cd+++++++++|dir.json/', { kind: 'directory', name: 'dir.json' }],
  ['|.d..t......|./', undefined],
  [
    'skipping non-regular file "link.json"',
    { kind: 'skipped', name: 'link.json', reason: 'it is no plain file' },
  ],
  ['big.json is over max-size', { kind: 'skipped', name: 'big.json', reason: 'it is too large' }],
  ['sending incremental file list', undefined],
  ['', undefined],
])('reads %j', (line, listed) => {
  expect(parseListedLine(line)).toEqual(listed);
});

it.each([
  [
    '-rw-r--r--      100000 2030/01/02 03:04:05 big.json',
    { name: 'big.json', isFile: true, sizeBytes: 100_000, mark: '- 100000 2030/01/02 03:04:05' },
  ],
  [
    'lrwxrwxrwx          11 2026/11/30 17:22:47 a b\\#012.json',
    { name: 'a b\\#012.json', isFile: false, sizeBytes: 11, mark: 'l 11 2026/11/30 17:22:47' },
  ],
  [
    'drwxr-xr-t        4096 2026/11/30 17:22:47 dir.json',
    { name: 'dir.json', isFile: false, sizeBytes: 4096, mark: 'd 4096 2026/11/30 17:22:47' },
  ],
  ['drwxr-xr-x        4096 2026/11/30 17:22:47 .', undefined],
  ['big.json is over max-size', undefined],
  ['', undefined],
])('reads of a list %j', (line, detail) => {
  expect(parseDetailLine(line)).toEqual(detail);
});
