import { expect, it } from 'vitest';
import { parseListedLine } from '../../../src/lib/rsync/listing.ts';

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
