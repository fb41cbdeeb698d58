import { describe, expect, it } from 'vitest';
import { createRedactor, redactNothing } from '../../../src/lib/exec/redact.ts';
import { renderLogTail } from '../../../src/lib/reconcile/log-tail.ts';

describe('the end of a log', () => {
  it.each([
    ['nothing', ' \n\n', ''],
    ['a few lines', 'a\nb\n', 'a\nb'],
    ['the same line again and again', 'a\nb\nb\nb\n', 'a\nb (3 times)'],
    ['more lines than help', `first\n${'abcdefghij'.split('').join('\n')}\n`, 'a\nb\nc\nd\ne\nf\ng\nh\ni\nj'],
    ['what would colour or clear a terminal', '\u001b[2J\u001b[31mred\u001b[0m\u0007\u0000\n', 'red'],
    ['tabs and carriage returns', 'a\tb\r\n10 %\r20 %\r\n', 'a b\n10 % 20 %'],
  ])('is told of %s', (_, logs, told) => {
    expect(renderLogTail(logs, redactNothing)).toBe(told);
  });

  it('is short, however long its lines are, as it goes into state files and the status', () => {
    const logs = `${'x'.repeat(1_000_000)}\n`.repeat(12);
    expect(renderLogTail(logs, redactNothing)).toBe(`${'x'.repeat(400)}... (10 times)`);
  });

  it('hides a secret that the end of a line would cut in two', () => {
    const redact = createRedactor(['s3cret-value']);
    const told = renderLogTail(`${'x'.repeat(395)}s3cret-value and more`, redact);
    expect(told).toBe(`${'x'.repeat(395)}*** a...`);
  });
});
