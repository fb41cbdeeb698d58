import { describe, expect, it } from 'vitest';
import {
  type CommandsFacts,
  judgeCommands,
  judgeProxy,
  type ProxyFacts,
} from '../../../src/lib/doctor/judge-commands.ts';

const now = new Date('2026-06-04T03:00:00.000Z');
const ago = (seconds: number): string => new Date(now.getTime() - seconds * 1000).toISOString();

const fine: CommandsFacts = {
  origin: 'https://agenda.example',
  server: { reachable: true, status: 404 },
  heartbeatIntervalMs: 15_000,
  beats: { lastOkAt: ago(10) },
  tokenFile: { path: '/etc/agenda-node.yaml', mode: 0o600, uid: 0 },
  files: [],
  userProblem: undefined,
  survey: { waiting: 0, running: [], lost: [], damaged: [] },
  hasSystemd: true,
};

const told = (facts: Partial<CommandsFacts>): string[] =>
  judgeCommands({ ...fine, ...facts }, now).map(({ level, what }) => `${level}: ${what}`);

describe('commands', () => {
  it('are told to be fine in one line', () => {
    expect(told({})).toEqual(['ok: https://agenda.example answers, 0 commands running']);
    const running = [{ jobId: 'a', startedAt: ago(1_800) }];
    expect(told({ survey: { ...fine.survey, running, waiting: 3 } })).toEqual([
      'ok: https://agenda.example answers, 1 command running, 3 waiting',
    ]);
    expect(told({ origin: undefined, server: undefined, beats: undefined })).toEqual([
      'ok: no control plane is told of this machine, 0 commands running',
    ]);
  });

  it('fail for a token that others can read (A20), with what mends it', () => {
    const tokenFile = { ...fine.tokenFile, mode: 0o640 };
    expect(judgeCommands({ ...fine, tokenFile }, now)).toEqual([
      {
        level: 'failure',
        what: 'the token can be read by others, and is good for any command',
        where: '/etc/agenda-node.yaml',
        fix: 'chmod 600 /etc/agenda-node.yaml',
      },
    ]);
  });

  it('fail for files that others can read', () => {
    const file = (name: string, mode: number) => ({ path: `/s/${name}`, mode, uid: 0 });
    const files = [file('a.json', 0o644), file('a.output', 0o600), file('b.json', 0o601)];
    expect(judgeCommands({ ...fine, files }, now)[0]).toMatchObject({
      what: '2 files of commands can be read by others, with what may be secret',
      fix: 'chmod go-rwx /s/a.json /s/b.json',
    });
  });

  it.each([401, 403])('fail where the control plane answers %i (A20)', (status) => {
    expect(told({ server: { reachable: true, status } })).toEqual([
      `failure: the control plane does not know our token (${status})`,
    ]);
  });

  it('fail where it cannot be reached, once', () => {
    const server = { reachable: false as const, why: 'cannot reach it' };
    expect(told({ server, beats: { lastError: 'cannot send', lastOkAt: ago(999) } })).toEqual([
      'failure: cannot reach it',
    ]);
  });

  it('fail for a heartbeat that was refused (A31)', () => {
    expect(told({ beats: { lastOkAt: ago(20), lastError: 'cannot send the heartbeat' } })).toEqual([
      'failure: cannot send the heartbeat',
    ]);
  });

  it.each([
    [45, 'ok: https://agenda.example answers, 0 commands running'],
    [46, 'failure: this machine is taken for offline: told last 46s ago, and 45s are allowed'],
  ])('are judged by when the control plane was told, %i s ago (A29)', (seconds, wanted) => {
    expect(told({ beats: { lastOkAt: ago(seconds) } })).toEqual([wanted]);
  });

  it('fail for a user that there is not', () => {
    expect(told({ userProblem: 'no such user' })).toEqual(['failure: no such user']);
  });

  it('are warned of where they run for too long (A50), and where they cannot be read', () => {
    const running = [
      { jobId: 'old', startedAt: ago(1_861) },
      { jobId: 'undated', startedAt: 'yesterday' },
      { jobId: 'young', startedAt: ago(1_860) },
    ];
    expect(told({ survey: { ...fine.survey, running, lost: ['y'], damaged: ['x'] } })).toEqual([
      'warning: 2 commands running for longer than half an hour',
      'warning: 1 command whose process is gone',
      'warning: the records of 1 command cannot be read',
    ]);
  });
});

describe('what is found of commands', () => {
  const survey = {
    ...fine.survey,
    running: [{ jobId: 'old', startedAt: ago(9_999) }],
    ...{ lost: ['gone'], damaged: ['odd'] },
  };
  const unreachable = { reachable: false as const, why: 'cannot reach https://agenda.example: no such name' };

  it.each([{ hasSystemd: true }, { hasSystemd: false }])('has a fix, where %j', ({ hasSystemd }) => {
    const findings = [
      ...judgeCommands({ ...fine, survey, hasSystemd, server: unreachable }, now),
      ...judgeCommands({ ...fine, hasSystemd, beats: { lastOkAt: ago(99) } }, now),
    ];
    expect(findings.map(({ fix }) => fix)).toEqual([
      'correct commands.central_base_url, or see to the network, the name server or the control plane',
      expect.stringContaining(hasSystemd ? 'systemctl status' : 'ps -ef'),
      expect.stringContaining('whoever asks for one is told that it has failed'),
      expect.stringContaining('it goes after commands.job_retention'),
      expect.stringContaining(hasSystemd ? 'systemctl list-timers' : 'run `reeve heartbeat`'),
    ]);
    const hasSystemdsFix = findings.some(({ fix }) => /systemctl|journalctl/.test(fix ?? ''));
    expect(hasSystemdsFix).toBe(hasSystemd);
  });
});

describe('the proxy', () => {
  const runs: ProxyFacts = {
    ...{ isInstalled: true, socket: '/run/m.sock', tunnels: 3, workers: 1, isDraining: false },
    ...{ hostProblem: undefined, hasSystemd: true },
  };
  const judge = (facts: Partial<ProxyFacts>): string[] =>
    judgeProxy({ ...runs, ...facts }).map(({ level, what }) => `${level}: ${what}`);

  const start =
    'systemctl start reeve-proxy.service; journalctl -u reeve-proxy -n 20 tells why it does not run';
  const alone = 'start it as docs/proxy.md tells for a machine without systemd';

  it.each([
    [{ error: 'it is not there' }, start],
    [{ error: 'no answer within 4s', isHung: true }, 'systemctl restart reeve-proxy.service'],
    [{ error: 'it is not there', hasSystemd: false }, alone],
    [{ error: 'no answer within 4s', isHung: true, hasSystemd: false }, `end HAProxy, and ${alone}`],
    [{ isInstalled: false, hasSystemd: false }, `apt-get install haproxy, then ${alone}`],
    [{ isInstalled: false }, 'apt-get install haproxy, then systemctl start reeve-proxy.service'],
  ])('has a fix that this machine has, where %j', (facts, fix) => {
    expect(judgeProxy({ ...runs, ...facts })).toMatchObject([{ level: 'failure', fix }]);
  });

  it.each([
    [{}, ['ok: HAProxy answers, 3 tunnels']],
    [{ workers: 2, tunnels: 1 }, ['ok: HAProxy answers, 1 tunnel, in 2 workers']],
    [{ isInstalled: false }, ['failure: HAProxy is not installed, and leads to instances']],
    [
      { differences: ['a had 9 instead of 20001'] },
      ['failure: HAProxy differs from the registry: a had 9 instead of 20001'],
    ],
    [{ error: 'it is not there' }, ['failure: it is not there']],
    [{ isDraining: true }, ['warning: new tunnels are refused (drain)']],
    [{ isDraining: true, error: 'it is not there' }, ['failure: it is not there']],
    [{ hostProblem: 'no address' }, ['failure: no address']],
  ])('is judged by %j', (facts, wanted) => {
    expect(judge(facts)).toEqual(wanted);
  });
});
