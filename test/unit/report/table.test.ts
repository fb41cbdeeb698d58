import { describe, expect, it } from 'vitest';
import { foldLines, renderTable } from '../../../src/lib/report/table.ts';

describe('renderTable', () => {
  it('makes each column as wide as its widest cell and leaves no trailing blanks', () => {
    const rows = [
      ['blog/web', 'running', ''],
      ['blog/nightly', 'error', 'it exited'],
    ];
    expect(renderTable(['SERVICE', 'STATE', 'MESSAGE'], rows)).toEqual([
      'SERVICE       STATE    MESSAGE',
      'blog/web      running',
      'blog/nightly  error    it exited',
    ]);
  });
});

describe('foldLines', () => {
  it.each([
    ['one line', 'one line', 'one line'],
    [
      'a heading and what it announces',
      'its last log lines:\nno database\nbye',
      'its last log lines: no database | bye',
    ],
    ['indentation and blank lines', '\n  a\n\n  b  \n', 'a | b'],
    ['Windows line ends', 'a\r\nb\r\n', 'a | b'],
  ])('folds %s', (_, text, folded) => {
    expect(foldLines(text)).toBe(folded);
  });

  it('cuts the middle of what is too long for a cell', () => {
    const text = 'cannot start it: a long story of drivers: the port is taken';
    expect(foldLines(text, 36)).toBe('cannot start it: a  ... ort is taken');
    expect(foldLines(text, 36)).toHaveLength(36);
  });
});
