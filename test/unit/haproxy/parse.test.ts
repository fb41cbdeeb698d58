import { describe, expect, it } from 'vitest';
import { UnavailableError } from '../../../src/lib/errors.ts';
import {
  describeReadyServers,
  parseBusyServers,
  parseDescription,
  parseReloads,
  parseServerHealth,
  parseServerStates,
} from '../../../src/lib/haproxy/parse.ts';

// As HAProxy 2.6.12 has answered.
const states = `1
# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl srv_check_port srv_check_addr srv_agent_addr srv_agent_port
2 a.test 1 10.0.0.1:20000 10.0.0.1 2 0 1 1 0 6 3 4 6 0 0 0 - 20000 - 0 0 - - 0
2 a.test 2 fd00::1:20000 fd00::1 2 8 1 1 0 1 0 2 7 0 0 0 - 20000 - 0 0 - - 0
2 a.test 3 10.0.0.3:20000 10.0.0.3 0 5 1 1 0 1 0 0 14 0 0 0 - 20000 - 0 0 - - 0
2 a.test 4 10.0.0.9:1 10.0.0.9 0 1 1 1 0 1 0 0 0 0 0 0 - 1 - 0 0 - - 0
3 _.b.test 1 10.0.0.1:20001 10.0.0.1 0 0 1 1 0 1 0 0 14 0 0 0 - 20001 - 0 0 - - 0`;

const connections = `# bkname/svname bkid/svid addr port - purge_delay used_cur used_max need_est unsafe_nb safe_nb idle_lim idle_cur idle_per_thr[2]
a.test/10.0.0.1:20000 2/1 10.0.0.1 20000 - 5000 3 3 1 0 0 -1 0 0 0
a.test/fd00::1:20000 2/2 fd00::1 20000 - 5000 0 1 1 0 0 -1 1 1 0
a.test/10.0.0.9:1 2/4 10.0.0.9 1 - 0 0 0 0 0 0 0 0
_.b.test/10.0.0.1:20001 3/1 10.0.0.1 20001 - 5000 0 0 0 0 0 -1 0 0 0`;

const processes = `#<PID>          <type>          <reloads>       <uptime>        <version>      
16109           master          3 [failed: 1]   0d00h00m22s     2.6.12-1+deb12u4
# workers
16122           worker          1               0d00h00m22s     2.6.12-1+deb12u4
# programs`;

describe('the servers of HAProxy', () => {
  it('are read with what they may take; one that is down is still ready', () => {
    expect(parseServerStates(states)).toEqual(
      new Map([
        [
          'a.test',
          new Map([
            ['10.0.0.1:20000', 'ready'],
            ['fd00::1:20000', 'drain'],
            ['10.0.0.3:20000', 'maint'],
            ['10.0.0.9:1', 'maint'],
          ]),
        ],
        ['_.b.test', new Map([['10.0.0.1:20001', 'ready']])],
      ]),
    );
  });

  it.each([
    ['a weight', ' 2 0 1 1 0 6 3 4 ', ' 2 0 0 1 0 6 3 4 '],
    ['an address', ' 10.0.0.1 2 0 1 1 ', ' 10.0.0.7 2 0 1 1 '],
    ['a port', ' - 20000 - ', ' - 20099 - '],
  ])('are altered by %s of somebody’s', (_what, from, to) => {
    const [version, header, first = ''] = states.split('\n');
    const changed = first.replace(from, to);
    expect(changed).not.toBe(first);
    const parsed = parseServerStates([version, header, changed].join('\n'));
    expect(parsed.get('a.test')).toEqual(new Map([['10.0.0.1:20000', 'altered']]));
  });

  it('are none where there is only a header', () => {
    expect(parseServerStates(states.split('\n').slice(0, 2).join('\n'))).toEqual(new Map());
  });

  it.each(['', 'Permission denied', states.replace('srv_admin_state', 'other'), states.replace('1', '2')])(
    'are not guessed from an answer of another form',
    (answer) => expect(() => parseServerStates(answer)).toThrow(UnavailableError),
  );

  it('are told as one text while all are ready, whatever checks have found', () => {
    const [version, header, first, , , , last] = states.split('\n');
    const down = first?.replace(' 2 0 1 1 0 6 3 4 ', ' 0 0 1 1 9 7 2 0 ');
    const ready = [version, header, first, last].join('\n');
    expect(describeReadyServers(ready)).toBe(
      'a.test 10.0.0.1:20000 10.0.0.1 0 1 1 20000\n_.b.test 10.0.0.1:20001 10.0.0.1 0 1 1 20001',
    );
    expect(describeReadyServers([version, header, down, last].join('\n'))).toBe(describeReadyServers(ready));
    expect(describeReadyServers(states)).toBeUndefined();
    const altered = first?.replace(' 2 0 1 1 0 6 3 4 ', ' 2 0 0 1 0 6 3 4 ');
    expect(describeReadyServers([version, header, altered, last].join('\n'))).not.toBe(
      describeReadyServers(ready),
    );
  });

  it('are up or down by what checks have found, but for those that somebody has taken out', () => {
    expect(parseServerHealth(states)).toEqual(
      new Map([
        ['a.test', { up: 1, down: [] }],
        ['_.b.test', { up: 0, down: ['10.0.0.1:20001'] }],
      ]),
    );
  });

  it('are busy with connections in use or idle', () => {
    expect(parseBusyServers(connections)).toEqual(new Set(['a.test/10.0.0.1:20000', 'a.test/fd00::1:20000']));
    expect(() => parseBusyServers('Permission denied')).toThrow(UnavailableError);
  });
});

describe('the processes of HAProxy', () => {
  it('tell their description, if they have one', () => {
    expect(parseDescription('Idle_pct: 100\nnode: vm\ndescription: reeve 0123\nStopping: 0')).toBe(
      'reeve 0123',
    );
    expect(parseDescription('node: vm\nStopping: 0')).toBeUndefined();
  });

  it('tell of reloads, good and bad', () => {
    expect(parseReloads(processes)).toEqual({ count: 3, failed: 1 });
    expect(parseReloads('Permission denied')).toBeUndefined();
  });
});
