import { describe, expect, it } from 'vitest';
import { createLog } from '../../../src/lib/report/log.ts';
import { escapeControls, toLine } from '../../../src/lib/report/printable.ts';

describe('text that may be somebody else’s', () => {
  it.each([
    ['a colour', 'a\u001b[31mb', 'a\\u001b[31mb'],
    ['a bell and a carriage return', '\u0007ok\rgone', '\\u0007ok\\u000dgone'],
    ['an eight-bit escape', 'a\u009b31m', 'a\\u009b31m'],
    ['an order that is turned round', 'a\u202egpj.exe\u202c', 'a\\u202egpj.exe\\u202c'],
    ['an order that is kept apart', 'a\u2066b\u2069\u200f', 'a\\u2066b\\u2069\\u200f'],
    ['what nobody sees', 'a\ufeff\u{e0041}\u00ad', 'a\\ufeff\\u{e0041}\\u00ad'],
    ['another line break', 'a\u2028b\u2029c\u0085', 'a\\u2028b\\u2029c\\u0085'],
    ['text of any language', 'größer 漢字 🚀 می‌شود 👩‍💻', 'größer 漢字 🚀 می‌شود 👩‍💻'],
    ['our own line breaks and tabs', 'a\n\tb', 'a\n\tb'],
  ])('is printed without being obeyed: %s', (_, text, printed) => {
    expect(escapeControls(text)).toBe(printed);
  });

  it('is one line of a journal, and no endless one', () => {
    expect(toLine('a\nb')).toBe('a\\nb');
    expect(toLine('x'.repeat(100_000))).toHaveLength(8000);
  });

  it('is told by the log as it is printed', () => {
    const lines: string[] = [];
    const invocation = { unit: false, journal: false, colour: false };
    const log = createLog({ invocation, level: 'info', runId: 'r', write: (line) => void lines.push(line) });
    log.warning('it said \u001b[31m');
    expect(lines).toEqual(['warning: it said \\u001b[31m\n']);
  });
});
