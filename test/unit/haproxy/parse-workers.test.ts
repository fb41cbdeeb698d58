import { describe, expect, it } from 'vitest';
import {
  parseGotMap,
  parseSessionIds,
  parseSessions,
  parseShownMap,
  parseWorkers,
  sumSessions,
} from '../../../src/lib/haproxy/parse-workers.ts';

describe('what HAProxy 2.6 answers', () => {
  it('names its workers, the current one first', () => {
    const answer = [
      '#<PID>          <type>          <reloads>       <uptime>        <version>      ',
      '12620           master          2 [failed: 0]   0d00h00m02s     2.6.12-1+deb12u4',
      '# workers',
      '12700           worker          0               0d00h00m02s     2.6.12-1+deb12u4',
      '# old workers',
      '12623           worker          2               0d00h00m10s     2.6.12-1+deb12u4',
      '12650           worker          1               0d00h00m06s     2.6.12-1+deb12u4',
      '# programs',
      '',
    ].join('\n');
    expect(parseWorkers(answer)).toEqual([
      { pid: 12_700, isOld: false },
      // Since 12650 has run, and since 12700 has.
      { pid: 12_623, isOld: true, oldForMs: 5_000 },
      { pid: 12_650, isOld: true, oldForMs: 1_000 },
    ]);
    expect(parseWorkers('')).toEqual([]);
  });

  it.each([
    ['of days', '2d03h04m05s', ((2 * 24 + 3) * 60 + 4) * 60_000 + 4_000],
    ['of no time', '0d00h00m00s', 0],
    ['of a clock that was set back', '0d00h00m-5s', undefined],
    ['of another version', 'long', undefined],
  ])('tells for how long a worker has been old by the one after it: %s', (_, uptime, oldForMs) => {
    // A reload that failed counts as well, so that numbers are left out.
    const answer = `# workers\n9 worker 1 ${uptime} 2.6\n# old workers\n7 worker 3 9d00h00m00s 2.6\n`;
    const [current, old] = parseWorkers(answer);
    expect([current, old?.oldForMs]).toEqual([{ pid: 9, isOld: false }, oldForMs]);
  });

  it('shows a map, two of one key among it', () => {
    const shown = parseShownMap('0x5648fd52c0c0 a 20001\n0x5648fd75c0e0 b 20002\n0x5648fd75c0f0 a 7\n');
    expect([...shown]).toEqual([
      [
        'a',
        [
          { ref: '0x5648fd52c0c0', value: '20001' },
          { ref: '0x5648fd75c0f0', value: '7' },
        ],
      ],
      ['b', [{ ref: '0x5648fd75c0e0', value: '20002' }]],
    ]);
    expect(parseShownMap('Unknown map identifier. Please use #<id> or <file>.').size).toBe(0);
  });

  it('gets one entry of a map, or none', () => {
    expect(
      parseGotMap('type=str, case=sensitive, found=yes, idx=tree, key="b", value="20002", type="str"'),
    ).toBe('20002');
    expect(parseGotMap('type=str, case=sensitive, found=no')).toBeUndefined();
  });

  it('counts the sessions of a backend by the name of the column', () => {
    const stats =
      '# pxname,svname,qcur,qmax,scur,smax\nnode,FRONTEND,,,9,9\ntunnels,instance,0,0,3,3\ntunnels,BACKEND,0,0,4,5\n';
    expect(parseSessions(stats, 'tunnels')).toBe(4);
    expect(parseSessions(stats, 'node')).toBeUndefined();
    expect(parseSessions('', 'tunnels')).toBeUndefined();
  });

  it('sums the sessions of all backends, and of nothing else', () => {
    const header = '# pxname,svname,qcur,qmax,scur,smax';
    const stats = `${header}\nnode,FRONTEND,,,9,9\na,server,0,0,3,3\na,BACKEND,0,0,4,5\nb,BACKEND,0,0,2,2\n`;
    expect(sumSessions(stats)).toBe(6);
    expect(sumSessions(`${header}\na,BACKEND,0,0,0,5\n`)).toBe(0);
    // What cannot be told is not none.
    expect(sumSessions('# pxname,svname\na,BACKEND\n')).toBeNaN();
  });

  it('lists the sessions of a backend, and no others', () => {
    const sessions = [
      '0x55d: proto=tcpv4 src=127.0.0.1:1 fe=node be=tunnels srv=instance ts=00',
      '0x55e: proto=tcpv4 src=127.0.0.1:2 fe=node be=plain srv=instance ts=00',
      '0x55f: proto=sockpair src=unix:2 fe=GLOBAL be=<NONE> srv=<none> ts=00',
    ].join('\n');
    expect(parseSessionIds(sessions, 'tunnels')).toEqual(['0x55d']);
  });
});
