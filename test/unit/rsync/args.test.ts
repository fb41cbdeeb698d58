import { describe, expect, it } from 'vitest';
import { buildListArgs, buildPullArgs, buildPushArgs } from '../../../src/lib/rsync/args.ts';

const transfer = { remoteShell: 'ssh -F none', from: 'deploy@control:/srv/deploy/web-1', to: '/var/staging' };

describe('the arguments of rsync', () => {
  it('pull plain files of one directory, by their contents, as safely as rsync can (O64, O65, O68)', () => {
    expect(buildPullArgs({ ...transfer, maxFileBytes: 65_536 })).toEqual([
      ...['--dirs', '--chmod=F600,D700', '--max-size=65536', '--exclude=.*', '--info=skip1,nonreg1'],
      ...['--itemize-changes', '--itemize-changes', '--out-format=|%i|%n'],
      ...['--times', '--omit-dir-times', '--checksum', '--no-links', '--no-devices', '--no-specials'],
      ...['--max-alloc=64M', '--timeout=30', '-e', 'ssh -F none', '--'],
      ...['deploy@control:/srv/deploy/web-1/', '/var/staging/'],
    ]);
  });

  it('push named files, durable once they are there', () => {
    expect(buildPushArgs({ from: '/var/outbox', to: '/srv/events/web-1/' })).toEqual([
      ...['--files-from=-', '--from0', '--no-relative', '--chmod=F644,D755', '--fsync'],
      ...['--times', '--omit-dir-times', '--checksum', '--no-links', '--no-devices', '--no-specials'],
      ...['--max-alloc=64M', '--timeout=30', '--', '/var/outbox/', '/srv/events/web-1/'],
    ]);
  });

  it('list a directory with sizes that are plain numbers, and take nothing', () => {
    expect(buildListArgs({ remoteShell: 'ssh -F none', from: transfer.from })).toEqual([
      ...['--list-only', '--dirs', '--no-human-readable', '--exclude=.*'],
      ...['--no-links', '--no-devices', '--no-specials', '--max-alloc=64M', '--timeout=30'],
      ...['-e', 'ssh -F none', '--', 'deploy@control:/srv/deploy/web-1/'],
    ]);
  });

  it('make all directories on the way only where there is one a day', () => {
    expect(buildPushArgs(transfer)).not.toContain('--mkpath');
    expect(buildPushArgs({ ...transfer, makesPath: true })).toContain('--mkpath');
  });

  it.each([
    ['pull', buildPullArgs({ ...transfer, maxFileBytes: 1 })],
    ['push', buildPushArgs(transfer)],
  ])('never removes, follows, trusts or leaves half a file in a %s', (_, args) => {
    const forbidden = [
      ...['--delete', '--remove-source-files', '--partial', '--inplace', '--delay-updates', '--recursive'],
      ...['--archive', '--links', '--copy-links', '--ignore-existing', '--update', '--old-args'],
      ...['--trust-sender', '--append', '--write-devices', '-a', '-r'],
    ];
    const given = args.filter((arg) => forbidden.some((word) => arg === word || arg.startsWith(`${word}-`)));
    expect(given).toEqual([]);
  });
});
