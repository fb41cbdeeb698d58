import { describe, expect, it } from 'vitest';
import { type ControlFacts, judgeControl } from '../../../src/lib/doctor/judge-control.ts';

describe('a control host', () => {
  const directory = (name: string, over: Partial<ControlFacts['directories'][number]> = {}) => ({
    ...{ name, path: `/h/actions/${name}`, mode: 0o755, uid: 0, device: 1 },
    ...{ isDirectory: true, isLink: false, writable: true, ...over },
  });
  const survey = { pending: 1, approved: 0, running: 2, late: [], timeoutMs: 900_000 };
  const root = '/h/actions';
  const control = (over: Partial<ControlFacts>): string[] =>
    judgeControl({ root, directories: [directory('.')], links: [], survey, ...over }).map(
      ({ level, what }) => `${level}: ${what}`,
    );

  it('is told to be fine in one line', () => {
    expect(control({})).toEqual(['ok: control host: 1 pending, 0 approved, 2 running']);
  });

  it('has missing directories made, but for the root and for what nodes report into', () => {
    const missing = { mode: undefined, uid: undefined, isDirectory: false, writable: false };
    expect(control({ directories: [directory('.', missing), directory('pending', missing)] })).toEqual([
      'failure: there is no such directory, which actions.root names',
    ]);
    expect(control({ directories: [directory('.'), directory('pending', missing)] })).toMatchObject([
      'ok: control host: 1 pending, 0 approved, 2 running',
    ]);
    expect(control({ directories: [directory('.'), directory('../events', missing)] })).toEqual([
      'warning: nodes have nowhere to report to: every redeploy will have failed',
    ]);
  });

  it.each([
    ['pending', { mode: 0o777 }, ['failure: anybody on this machine may propose and approve there']],
    ['../events', { mode: 0o777 }, ['failure: anybody on this machine may report for any node']],
    ['running', { writable: false }, ['failure: actions cannot be moved: it cannot be written']],
    ['failed', { isDirectory: false }, ['failure: it is no directory']],
    [
      'completed',
      { device: 2 },
      ['failure: it is another file system than the root, so that no action can be moved there'],
    ],
    ['../events', { device: 2, writable: false }, ['ok: control host: 1 pending, 0 approved, 2 running']],
    ['approved', { error: 'EACCES' }, ['failure: it cannot be looked at: EACCES']],
  ])('is judged by its directory %s (%j)', (name, over, wanted) => {
    expect(control({ directories: [directory('.'), directory(name, over)] })).toEqual(wanted);
  });

  it('fails for redeploys that nobody ends (D41)', () => {
    const late = [
      { id: 'young', node: 'web-1', waitedMs: 1_500_000 },
      { id: 'old', node: 'web-2', waitedMs: 1_501_000 },
    ];
    const directories = [directory('.')];
    expect(judgeControl({ root, directories, links: [], survey: { ...survey, late } })).toMatchObject([
      {
        level: 'failure',
        what: '1 action running past its time, which is 15m',
        where: 'old on web-2',
      },
    ]);
  });

  it('fails for links, wherever they lead, since none is followed', () => {
    const link = { isLink: true, isDirectory: false };
    const told = 'failure: a symbolic link, and none is followed there';
    expect(control({ directories: [directory('.', link), directory('pending')] })).toEqual([told]);
    const dangling = { ...link, mode: undefined, uid: undefined };
    const directories = [directory('.'), directory('pending', link), directory('deploy', dangling)];
    expect(control({ directories, survey: { problem: 'a link' } })).toEqual([told, told]);
    expect(control({ links: ['/h/actions/deploy/web-1'] })).toEqual([told]);
  });

  it('fails where nothing can be counted, and says why', () => {
    expect(control({ survey: { problem: 'EIO' } })).toEqual(['failure: actions cannot be counted: EIO']);
  });
});
