import { describe, expect, it } from 'vitest';
import { explainStatus, judgeStatus, pickComplaints } from '../../../src/lib/rsync/status.ts';

describe('what rsync answers (R39, O65)', () => {
  it.each([
    [0, 'complete'],
    [24, 'vanished'],
    [23, 'partial'],
    ...[5, 10, 12, 20, 30, 35, 255].map((status) => [status, 'unreachable'] as const),
    ...[1, 2, 3, 4, 11, 13, 14, 21, 22, 25, 127, 77].map((status) => [status, 'failed'] as const),
  ] as const)('tells %i apart: %s', (status, verdict) => {
    expect(judgeStatus(status)).toBe(verdict);
  });

  it('names the status, known or not', () => {
    expect(explainStatus(30)).toBe('no answer for too long (30)');
    expect(explainStatus(99)).toBe('it failed (99)');
  });

  it('repeats the complaints and not the sums', () => {
    const output = [
      'rsync: [sender] send_files failed to open "/x/a.json": Permission denied (13)',
      'rsync error: some files/attrs were not transferred (see previous errors) (code 23) at main.c(1)',
    ];
    expect(pickComplaints(output.join('\n'))).toBe(output[0]);
    expect(pickComplaints(`${output[1]}\n`)).toBe(output[1]);
    expect(pickComplaints('')).toBe('');
  });

  it('repeats what a program in Python fell over, and not where', () => {
    const frames = [
      ['  File "/usr/bin/rrsync", line 1005, in <module>', '    main()', '    ~~~~^^'],
      ['  File "/usr/bin/rrsync", line 7, in lock_or_die', '    fd = os.open(args.dir, os.O_RDONLY)'],
    ].flat();
    const head = 'Traceback (most recent call last):';
    const cause = "FileNotFoundError: [Errno 2] No such file or directory: '/opt/homelab/events/web-1'";
    const sums = [
      'rsync: connection unexpectedly closed (0 bytes received so far) [sender]',
      'rsync error: error in rsync protocol data stream (code 12) at io.c(1)',
    ];
    const pick = (...lines: string[]): string => pickComplaints([...lines, ...sums, ''].join('\n'), 12);
    expect(pick(head, ...frames, cause)).toBe(cause);
    expect(pick(...frames.slice(1), cause), 'of which the head is cut off').toBe(cause);
    const between = 'During handling of the above exception, another exception occurred:';
    expect(pick(head, ...frames, cause, '', between, '', head, ...frames, 'OSError: no')).toBe(
      `${cause}; OSError: no`,
    );
    expect(pick('  indented', 'rsync: no')).toBe('indented; rsync: no');
  });

  it.each([
    'ssh: connect to host 192.0.2.7 port 22: Connection refused',
    'Host key verification failed.',
    'deploy@control: Permission denied (publickey,password).',
  ])('repeats what ssh ends with, after its warnings, whichever of the two ends first: %s', (end) => {
    const warnings = [
      '@@@@',
      '@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!',
      '@@@@',
      'Someone could be',
    ];
    for (const status of [12, 255]) {
      expect(pickComplaints([...warnings, end, ''].join('\n'), status)).toBe(
        `@@@@; Someone could be; ${end}`,
      );
    }
  });

  it('repeats no more than a line holds', () => {
    expect(pickComplaints('x'.repeat(10_000))).toHaveLength(600);
    expect(pickComplaints('1\n2\n3\n4')).toBe('1; 2; 3');
    expect(pickComplaints('1\n2\n3\n4\n', 255)).toBe('2; 3; 4');
  });
});
