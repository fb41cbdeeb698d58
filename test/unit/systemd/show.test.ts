import { describe, expect, it } from 'vitest';
import { parseProperties } from '../../../src/lib/systemd/show.ts';

describe('what systemctl shows', () => {
  it('is one record a unit, in its order, with values that may contain anything', () => {
    const text = 'Id=a.service\nResult=success\nEnvironment=A=1 B=2\n\nId=b.timer\nResult=\n';
    expect(parseProperties(text)).toEqual([
      { Id: 'a.service', Result: 'success', Environment: 'A=1 B=2' },
      { Id: 'b.timer', Result: '' },
    ]);
  });

  it.each(['', '\n\n', 'no unit\n'])('is nothing in %j', (text) => {
    expect(parseProperties(text)).toEqual([]);
  });
});
