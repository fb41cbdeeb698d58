import { describe, expect, it } from 'vitest';
import { formatBytes } from '../../../src/lib/doctor/finding.ts';
import {
  type DirectoryFacts,
  judgeCertificates,
  judgeConfigFile,
  judgeDirectories,
  judgeDisks,
  judgeLeftovers,
  judgeSecrets,
  type PathFacts,
} from '../../../src/lib/doctor/judge-files.ts';

const directory = (overrides: Partial<DirectoryFacts> = {}): DirectoryFacts => ({
  path: '/var/lib/reeve',
  mode: 0o700,
  uid: 0,
  isPrivate: true,
  writable: true,
  isMadeAtBoot: false,
  ...overrides,
});
const where = '/var/lib/reeve';

describe('directories', () => {
  it('in order are one line', () => {
    const open = directory({ path: '/var/cache/reeve', mode: 0o755, isPrivate: false });
    expect(judgeDirectories([directory(), open], 0)).toEqual([{ level: 'ok', what: '2 in order' }]);
  });

  it('that are not there yet are no trouble, but for those that only the boot makes', () => {
    const missing = directory({ mode: undefined, uid: undefined });
    expect(judgeDirectories([missing], 0)).toEqual([
      { level: 'ok', what: 'none yet: they are made when they are needed' },
    ]);
    expect(judgeDirectories([{ ...missing, isMadeAtBoot: true }], 0)).toEqual([
      { level: 'failure', what: 'it is missing', where, fix: '`systemd-tmpfiles --create reeve.conf`' },
    ]);
  });

  it.each([
    [{ mode: 0o770 }, 'failure', 'others may write into it', `chmod go-w ${where}`],
    [{ mode: 0o702, isPrivate: false }, 'failure', 'others may write into it', `chmod go-w ${where}`],
    [{ mode: 0o755 }, 'warning', 'others may look into it', `chmod o-rwx ${where}`],
    [{ uid: 1000 }, 'warning', 'it belongs to user 1000, not 0', `chown 0 ${where}`],
    [{ writable: false }, 'failure', 'it cannot be written', 'mount it read-write'],
  ] as const)('with %o are told of', (overrides, level, what, fix) => {
    expect(judgeDirectories([directory(overrides)], 0)).toEqual([{ level, what, where, fix }]);
  });

  it('that are root’s are not to be taken from it, whoever asks', () => {
    expect(judgeDirectories([directory({})], 1000)).toEqual([
      {
        level: 'warning',
        what: 'it belongs to user 0, not 1000',
        where,
        fix: 'run this as root, or set REEVE_STATE, REEVE_RUN and REEVE_CACHE',
      },
    ]);
  });

  it('that cannot be looked at are told of', () => {
    const hidden = directory({ mode: undefined, uid: undefined, error: 'EACCES: permission denied' });
    expect(judgeDirectories([hidden], 0)).toEqual([
      { level: 'failure', what: 'it cannot be looked at: EACCES: permission denied', where },
    ]);
  });
});

describe('secrets', () => {
  const file = (path: string, mode?: number, uid = 0): PathFacts => ({ path, mode, uid });

  it('for their owner alone are one line', () => {
    expect(judgeSecrets([file('a', 0o700), file('b', 0o600)], 0)).toEqual([
      { level: 'ok', what: '2 files for the owner alone' },
    ]);
    expect(judgeSecrets([{ path: 'a', mode: undefined, uid: undefined }], 0)).toEqual([
      { level: 'ok', what: 'none on disk' },
    ]);
  });

  it('that others may read, that others own, or that are hidden, are named', () => {
    const files = [
      file('a', 0o640),
      file('b', 0o604),
      file('c', 0o600, 1000),
      { ...file('d'), error: 'EIO' },
    ];
    expect(judgeSecrets(files, 0)).toEqual([
      { level: 'failure', what: 'it cannot be looked at: EIO', where: 'd' },
      { level: 'failure', what: '2 readable by others', where: 'a, b', fix: 'chmod go-rwx a b' },
      { level: 'warning', what: '1 of other users', where: 'c', fix: 'chown 0 c' },
    ]);
  });

  it('are named up to five', () => {
    const files = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((path) => file(path, 0o644));
    expect(judgeSecrets(files, 0)).toEqual([
      {
        level: 'failure',
        what: '7 readable by others',
        where: 'a, b, c, d, e and 2 more',
        fix: 'chmod go-rwx',
      },
    ]);
  });
});

describe('the configuration file', () => {
  it.each([
    [0o600, []],
    [0o640, []],
    [undefined, []],
    [
      0o644,
      [
        {
          level: 'warning',
          what: 'everybody may read it, tokens included',
          where: 'f',
          fix: 'chmod o-rwx f',
        },
      ],
    ],
    [0o660, [{ level: 'failure', what: 'others may change it', where: 'f', fix: 'chmod go-w f' }]],
  ])('with mode %o', (mode, expected) => {
    expect(judgeConfigFile({ path: 'f', mode, uid: 0 })).toEqual(expected);
  });
});

describe('damaged state files', () => {
  it('are named one by one (R32, R55)', () => {
    expect(judgeLeftovers([])).toEqual([{ level: 'ok', what: 'no state file has been set aside' }]);
    const path = '/var/lib/reeve/ports.json.corrupt-2026-06-04T03-00-00-000Z';
    expect(judgeLeftovers([path])).toEqual([
      expect.objectContaining({ level: 'warning', what: 'a damaged state file was set aside', where: path }),
    ]);
  });
});

describe('certificates', () => {
  const now = new Date('2026-06-04T03:00:00Z');
  const certificate = { path: '/cert.pem', setting: 'commands.tls' };

  it.each([
    ['2026-06-04T02:59:00Z', 'failure', 'it has expired on 2026-06-04'],
    ['2026-07-03T03:00:00Z', 'warning', 'it expires on 2026-07-03, in 29 days'],
    ['2026-07-05T03:00:00Z', 'ok', 'valid until 2026-07-05'],
  ])('that end at %s', (validTo, level, what) => {
    const [finding] = judgeCertificates([{ ...certificate, validTo: new Date(validTo) }], now);
    expect(finding).toMatchObject({ level, what, where: '/cert.pem' });
  });

  it.each(['jobs.http.tls', 'commands.tls'])(
    'that cannot be read are told of where %s names them',
    (setting) => {
      const unreadable = { path: '/cert.pem', setting, validTo: undefined, error: 'ENOENT' };
      expect(judgeCertificates([unreadable], now)).toEqual([
        {
          ...{ level: 'failure', what: 'it cannot be used: ENOENT', where: '/cert.pem' },
          fix: `put a certificate there, or correct its path in ${setting}`,
        },
      ]);
    },
  );
});

describe('disks', () => {
  const gib = 1024 ** 3;
  it.each([
    ['half full', 100, 50, 'ok'],
    ['under a tenth free', 100, 9, 'warning'],
    ['under a fiftieth free', 100, 1.9, 'failure'],
    ['a few GiB with less than one free', 5, 0.9, 'warning'],
    ['a small one with less than one GiB free', 2, 0.9, 'ok'],
    ['nothing at all (a pseudo file system)', 0, 0, 'ok'],
  ])('are judged by what is free: %s', (_, total, free, level) => {
    const disks = [{ path: '/var', totalBytes: total * gib, freeBytes: free * gib }];
    expect(judgeDisks(disks, formatBytes).map((finding) => finding.level)).toEqual([level]);
  });

  it('are told with numbers that people read', () => {
    const disks = [{ path: '/var', totalBytes: 100 * gib, freeBytes: gib / 2 }];
    expect(judgeDisks(disks, formatBytes)[0]).toMatchObject({
      what: '512 MiB of 100 GiB free',
      where: '/var',
    });
    expect([formatBytes(999), formatBytes(1536), formatBytes(1024 ** 5)]).toEqual([
      '999 B',
      '1.5 KiB',
      '1024 TiB',
    ]);
  });

  it('may be none', () => {
    expect(judgeDisks([], formatBytes)).toEqual([{ level: 'ok', what: 'nothing to measure' }]);
  });
});
