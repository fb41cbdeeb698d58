import { describe, expect, it } from 'vitest';
import { countOldWorkers, parseVersion } from '../../../src/lib/haproxy/parse.ts';

const head = `#<PID>          <type>          <reloads>       <uptime>        <version>
902             master          2 [failed: 0]   0d00h02m34s     2.6.12-1+deb12u4
# workers
1143            worker          0               0d00h00m01s     2.6.12-1+deb12u4
`;

describe('what HAProxy tells of itself', () => {
  it('has its version', () => {
    expect(parseVersion('Name: HAProxy\nVersion: 2.6.12-1+deb12u4\nRelease_date: 2026/10/17\n')).toBe(
      '2.6.12-1+deb12u4',
    );
    expect(parseVersion('')).toBeUndefined();
  });

  it('has the workers of before a reload that are still there', () => {
    const old = '915             worker          1               0d00h02m34s     2.6.12-1+deb12u4\n';
    expect(countOldWorkers(`${head}# programs\n`)).toBe(0);
    expect(countOldWorkers(`${head}# old workers\n${old}# programs\n`)).toBe(1);
    expect(countOldWorkers(`${head}# old workers\n${old}${old.replace('915', '801')}# programs\n`)).toBe(2);
  });
});
