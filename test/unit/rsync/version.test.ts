import { expect, it } from 'vitest';
import { isOlderVersion, parseRsyncVersion } from '../../../src/lib/rsync/version.ts';

it.each([
  ['rsync  version 3.2.7  protocol version 31\nCopyright (C) 1996-2022', '3.2.7'],
  ['rsync  version v3.2.4pre1  protocol version 31', '3.2.4'],
  ['rsync version 3.5.0 protocol version 32', '3.5.0'],
  ['openrsync: protocol version 29', undefined],
  ['', undefined],
])('reads which rsync it is (%j)', (output, wanted) => {
  expect(parseRsyncVersion(output)).toBe(wanted);
});

it.each([
  ['3.2.3', '3.2.4', true],
  ['3.2.4', '3.2.4', false],
  ['3.10.0', '3.2.4', false],
  ['2.9.9', '3.2.4', true],
  ['4.0.0', '3.2.4', false],
])('orders versions by their numbers (%s before %s: %s)', (version, than, wanted) => {
  expect(isOlderVersion(version, than)).toBe(wanted);
});
