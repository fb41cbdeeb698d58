import { describe, expect, it } from 'vitest';
import type { NodeSurvey } from '../../../src/lib/actions/survey.ts';
import { type ActionsFacts, judgeActions, type PlaceFacts } from '../../../src/lib/doctor/judge-actions.ts';

const now = new Date('2026-06-04T03:00:00.000Z');
const agoMs = (seconds: number): number => now.getTime() - seconds * 1000;
const ago = (seconds: number): string => new Date(agoMs(seconds)).toISOString();

const key = (name: string, mode: number | undefined = 0o600) => ({
  ...{ path: `/etc/reeve/ssh/${name}`, mode, uid: 0 },
});
const noKey = (name: string) => ({ path: `/etc/reeve/ssh/${name}`, mode: undefined, uid: undefined });
const place = (over: Partial<PlaceFacts> = {}): PlaceFacts => ({
  ...{ direction: 'pull', place: 'deploy@control:/d/', kind: 'ssh' },
  ...{ keys: [key('pull'), noKey('id_ed25519')], ...over },
});

const idle = { inbox: { count: 0 }, outbox: { count: 0 }, quarantine: [], open: [] };
const fine: ActionsFacts = {
  ...{
    node: 'web-1',
    timeoutMs: 600_000,
    missingPrograms: [],
    userProblem: undefined,
    rsyncVersion: '3.4.1',
  },
  places: [place(), place({ direction: 'push', place: 'deploy@control:/e/' })],
  knownHosts: { path: '/etc/reeve/ssh/known_hosts', mode: 0o644, uid: 0, hosts: 1 },
  checkout: { path: '/opt/checkout', isThere: true },
  services: { path: '/opt/checkout/hosts/web-1/services.yaml', problem: undefined, unnamable: [] },
  survey: idle,
  strays: { count: 0, names: [] },
};

const judge = (facts: Partial<ActionsFacts>) => judgeActions({ ...fine, ...facts }, now);
const told = (facts: Partial<ActionsFacts>): string[] =>
  judge(facts).map(({ level, what }) => `${level}: ${what}`);
const surveyed = (survey: Partial<NodeSurvey>): string[] => told({ survey: { ...idle, ...survey } });

describe('actions of a node', () => {
  it('are told to be fine in one line', () => {
    expect(told({})).toEqual(['ok: node web-1: 0 in the inbox, 0 running, 0 results to send']);
    expect(
      surveyed({
        ...{ inbox: { count: 2, sinceMs: agoMs(3_600) }, outbox: { count: 1, sinceMs: agoMs(600) } },
        open: [
          { actionId: 'a', state: 'started', at: ago(1_200) },
          { actionId: 'b', state: 'ended', at: ago(600) },
        ],
      }),
      'as long as all is within its time',
    ).toEqual(['ok: node web-1: 2 in the inbox, 1 running, 1 result to send']);
  });

  it('fail for programs that are missing', () => {
    expect(told({ missingPrograms: ['rsync', 'ssh'] })).toEqual(['failure: not installed: rsync, ssh']);
  });

  it.each<[string, Partial<PlaceFacts>, string[]]>([
    [
      'no key (D4)',
      { keys: [noKey('pull'), noKey('id_ed25519')] },
      ['failure: there is no key to pull with'],
    ],
    [
      'a key that others can read',
      { keys: [key('pull', 0o640)] },
      ['failure: a private key can be read by others, so that ssh refuses it'],
    ],
    [
      'a directory that is not there',
      { kind: 'local', place: '/mnt/x', isThere: false, keys: [] },
      ['failure: actions.pull names a directory that is not there'],
    ],
    [
      'a daemon, which nobody proves',
      { kind: 'daemon', place: 'rsync://control/x', keys: [] },
      ['warning: actions.pull goes to an rsync daemon, which proves nothing of who it is'],
    ],
  ])('are told of %s', (_, over, wanted) => {
    expect(told({ places: [place(over)] })).toEqual(wanted);
  });

  it('say how to mend a key, and where one is expected', () => {
    expect(judge({ places: [place({ keys: [key('pull', 0o644)] })] })).toMatchObject([
      { where: '/etc/reeve/ssh/pull', fix: 'chmod 600 /etc/reeve/ssh/pull' },
    ]);
    expect(judge({ places: [place({ keys: [noKey('pull'), noKey('id_ed25519')] })] })).toMatchObject([
      { where: '/etc/reeve/ssh/pull or /etc/reeve/ssh/id_ed25519' },
    ]);
  });

  it('are content with a directory of this machine, and without ssh', () => {
    const { knownHosts: _, ...local } = fine;
    const places = [place({ kind: 'local', place: '/mnt/x', isThere: true, keys: [] })];
    expect(judgeActions({ ...local, places }, now)).toMatchObject([{ level: 'ok' }]);
  });

  it('fail where ssh knows no control host, or anybody may name one', () => {
    const path = '/etc/reeve/ssh/known_hosts';
    expect(told({ knownHosts: { path, mode: undefined, uid: undefined, hosts: 0 } })).toEqual([
      'failure: no control host is known: ssh talks to nobody',
    ]);
    expect(told({ knownHosts: { path, mode: 0o664, uid: 0, hosts: 1 } })).toEqual([
      'failure: others may say who the control host is',
    ]);
  });

  it('fail without a checkout once, and not for what is in it (D31)', () => {
    const services = { ...fine.services, problem: 'cannot read' };
    expect(told({ checkout: { path: '/opt/checkout', isThere: false }, services })).toEqual([
      'failure: there is no checkout: every action is rejected',
    ]);
    expect(judge({ services })).toEqual([
      {
        level: 'failure',
        what: "the node's services are not known: every action is rejected: cannot read",
        where: services.path,
        fix: 'have the services of this node listed there, or correct actions.node',
      },
    ]);
  });

  it.each([
    [{ isThere: false, canRun: false }, ['failure: there is no such deploy script: every deploy fails']],
    [{ isThere: true, canRun: false }, ['failure: the deploy script cannot be run: every deploy fails']],
    [{ isThere: true, canRun: true }, ['ok: node web-1: 0 in the inbox, 0 running, 0 results to send']],
  ])('are judged by the script of the checkout (%j)', (about, wanted) => {
    expect(told({ script: { path: '/opt/checkout/deploy.sh', ...about } })).toEqual(wanted);
  });

  it('fail for a user that there is not', () => {
    expect(told({ userProblem: 'no such user' })).toEqual(['failure: no such user']);
  });

  it('fail for one that runs past its time, and for one whose result has not left (D38, D43)', () => {
    expect(
      surveyed({
        open: [
          { actionId: 'young', state: 'started', at: ago(1_200) },
          { actionId: 'old', state: 'started', at: ago(1_201) },
          { actionId: 'undated', state: 'started', at: 'yesterday' },
          { actionId: 'lost', state: 'lost', at: ago(601) },
          { actionId: 'untold', state: 'ended', at: ago(601) },
          { actionId: 'dated to come', state: 'ended', at: ago(-601) },
          { actionId: 'damaged', state: 'damaged', at: ago(0) },
          { actionId: 'unreadable', state: 'unreadable', at: ago(0) },
          { actionId: 'newer', state: 'newer', at: ago(0) },
          { actionId: 'announced', state: 'announced', at: ago(172_801) },
          { actionId: 'just announced', state: 'announced', at: ago(172_800) },
        ],
      }),
    ).toEqual([
      'failure: 2 actions running past its time, which is 10m',
      'failure: 1 action begun, and the process is gone',
      'failure: 2 actions ended, and no result in the outbox',
      'warning: the markers of 1 action are damaged',
      'failure: the markers of 1 action cannot be read',
      'warning: the markers of 1 action are of a later reeve',
      'warning: the markers of 1 action were announced and never made',
    ]);
    expect(
      surveyed({ open: [{ actionId: 'lost', state: 'lost', at: ago(600) }] }),
      'the next run settles it',
    ).toEqual(['warning: 1 action begun, and the process is gone']);
  });

  it('fail for results that are not sent (D43), and for an inbox that nobody empties', () => {
    const findings = judge({
      survey: {
        ...idle,
        inbox: { count: 3, sinceMs: agoMs(3_601) },
        outbox: { count: 2, sinceMs: agoMs(601) },
      },
    });
    expect(findings).toMatchObject([
      { level: 'failure', what: '3 in the inbox, waiting for 1h' },
      {
        level: 'failure',
        what: '2 results not sent, the oldest for 10m 1s',
        where: 'deploy@control:/e/',
        fix: '`reeve rsync-pull` says why',
      },
    ]);
  });

  it('fail for what waits since a time that is to come: how long, nobody knows', () => {
    const waiting = { count: 1, sinceMs: agoMs(-601) };
    expect(surveyed({ inbox: waiting, outbox: waiting })).toEqual([
      'failure: 1 in the inbox, waiting since 2026-06-04T03:10:01.000Z, which is to come',
      'failure: 1 result not sent, the oldest since 2026-06-04T03:10:01.000Z, which is to come',
    ]);
  });

  it('are told of all the same where what waits, or what was left, cannot be looked at', () => {
    const facts = { survey: { problem: 'EIO' }, strays: { problem: 'of a later reeve' } };
    expect(told({ ...facts, userProblem: 'no such user' })).toEqual([
      'failure: no such user',
      'failure: what waits here cannot be looked at: EIO',
      'failure: what was left at the source is not known: of a later reeve',
    ]);
  });

  it.each([
    ['3.2.3', ['failure: rsync 3.2.3 is too old: it sends no results']],
    ['3.2.4', ['warning: rsync 3.2.4 may let the control host write outside of what is pulled']],
    ['3.3.0', ['warning: rsync 3.3.0 may let the control host write outside of what is pulled']],
    ['3.4.0', ['ok: node web-1: 0 in the inbox, 0 running, 0 results to send']],
    ['4.0.0', ['ok: node web-1: 0 in the inbox, 0 running, 0 results to send']],
    [undefined, ['ok: node web-1: 0 in the inbox, 0 running, 0 results to send']],
  ])('are judged by the rsync of the node (%s)', (rsyncVersion, wanted) => {
    expect(told({ rsyncVersion })).toEqual(wanted);
  });

  it('warn of services whose redeploys could have no id', () => {
    const unnamable = ['a'.repeat(50), 'my_app'];
    const [finding, ...others] = judge({ services: { ...fine.services, unnamable } });
    expect(others).toEqual([]);
    expect(finding).toMatchObject({
      level: 'warning',
      what: '2 services can have no redeploy: their names fit into no id',
      where: `${'a'.repeat(50)}, my_app`,
    });
  });

  it('warn of quarantine and of strays, whose names are quoted (D45, D46)', () => {
    const quarantine = ['20260604-1-1-x.json', 'a\u001b[31mb'];
    const strays = { count: 7, names: ['README', 'x\ny'] };
    expect(judge({ survey: { ...idle, quarantine }, strays })).toMatchObject([
      {
        level: 'warning',
        what: '2 refused, and kept in quarantine for people',
        where: '20260604-1-1-x.json, "a\\u001b[31mb"',
      },
      {
        level: 'warning',
        what: '7 at the source left alone: they are no actions',
        where: '"README", "x\\ny"',
      },
    ]);
  });
});
