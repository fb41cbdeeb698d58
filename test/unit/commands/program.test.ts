import { describe, expect, it } from 'vitest';
import { type ParsedAnswer, parseCommandLine } from '../../../src/commands/program.ts';
import { commands, groupSummaries } from '../../../src/commands/registry.ts';

async function helpOf(...words: string[]): Promise<string> {
  return ((await parseCommandLine(words, '1.2.3')) as ParsedAnswer).answer;
}

describe('help', () => {
  it.each([['deploy'], ['config'], ['config', 'check'], ['lock', 'list']])(
    'on `%s %s` is the same after the words and after `help`',
    async (...words) => {
      expect(await helpOf('help', ...words)).toBe(await helpOf(...words, '--help'));
    },
  );

  it('of a command names the flags that all of them take', async () => {
    expect(await helpOf('plan', '--help')).toMatch(/Global Options:[\s\S]*--config <file>[\s\S]*--json/);
  });

  it('of a subcommand has each flag once, and none of its group’s', async () => {
    const help = await helpOf('backup', 'list', '--help');
    expect(help.match(/--service/g)).toHaveLength(1);
    expect(help).not.toContain('--now');
    expect(help).toMatch(/Global Options:[\s\S]*--json/);
  });

  it.each([
    ['proxy', 'set', '20 seconds unless it is given'],
    ['proxy', 'remove', '20 seconds unless it is given'],
    ['proxy', 'sync', '20 seconds unless it is given'],
    ['reconcile', '', 'instead of exiting 75'],
  ])('of `%s %s` tells how long a busy lock is waited for: %s', async (group, word, told) => {
    const words = [group, word].filter((one) => one !== '');
    const help = (await helpOf(...words, '--help')).replaceAll(/\s+/g, ' ');
    expect(help).toContain(told);
    expect(/instead of exiting 75/.test(help)).toBe(group === 'reconcile');
  });

  it.each(['commands', 'jobs'])('of `api %s` tells where there is an idle end', async (word) => {
    const help = (await helpOf('api', word, '--help')).replaceAll(/\s+/g, ' ');
    expect(help).toContain("(default: 60 on systemd's socket, never with --listen)");
  });

  it('on a misspelt command names the one that was meant', async () => {
    await expect(helpOf('help', 'stauts')).rejects.toThrow(
      "unknown command 'stauts'\n(Did you mean status?)",
    );
  });

  it('after `--` belongs to the command that is run', async () => {
    expect(await parseCommandLine(['lock', 'reconcile', '--', 'help', '-version'], '1.2.3')).toMatchObject({
      args: ['reconcile', 'help', '-version'],
    });
  });

  it('lists each first word that has something for people, and no other', async () => {
    const listed = [...(await helpOf('--help')).matchAll(/^ {2}([a-z][a-z-]*)(?: |$)/gm)].map(
      ([, word]) => word,
    );
    const shown = commands.filter(({ hidden }) => hidden !== true).map(({ path }) => path.split(' ', 1)[0]);
    expect(listed.sort()).toEqual([...new Set(shown)].sort());
    expect(listed).not.toContain('command');
    expect(await helpOf('command', 'run', '--help')).toContain('Usage: reeve command run');
  });

  it('has a line for every first word', () => {
    const words = new Set(commands.map(({ path }) => path.split(' ', 1)[0] as string));
    const told = (word: string) =>
      groupSummaries[word] ?? commands.find(({ path }) => path === word)?.summary;
    expect([...words].filter((word) => told(word) === undefined)).toEqual([]);
  });
});

describe('flags', () => {
  it.each([
    ['--now', 'backup', '--now', 'list'],
    ['--now', 'backup', 'prune', '--dry-run', '--now'],
    ['--service', 'backup', '--service', 'a/b', 'restore', 'blog/db', 'app'],
  ])('that only the group has are refused by its subcommand: %s', async (flag, ...words) => {
    await expect(parseCommandLine(words, '1.2.3')).rejects.toThrow(`unknown option '${flag}'`);
  });

  it('that both have are the subcommand’s', async () => {
    for (const words of [
      ['backup', 'list', '--service', 'blog/db'],
      ['backup', '--service', 'blog/db', 'list'],
    ]) {
      expect(await parseCommandLine(words, '1.2.3')).toMatchObject({
        spec: { path: 'backup list' },
        options: { service: 'blog/db' },
      });
    }
  });
});

describe('`-config PATH` of the seed systems (P3)', () => {
  it.each([
    ['claim', ['claim', '-config', '/etc/ployd.yaml']],
    ['claim', ['-config', '/etc/ployd.yaml', 'claim', '--window', '5']],
    ['claim', ['claim', '-config=/etc/ployd.yaml']],
    ['job list', ['job', 'list', '-config', '/etc/ployd.yaml']],
    ['job logs', ['job', '-config', '/etc/ployd.yaml', 'logs', '-f', 'job-1']],
    ['job run', ['job', 'run', 'job-1', '-config', '/etc/ployd.yaml']],
    ['api jobs', ['api', 'jobs', '-config=/etc/ployd.yaml']],
    ['heartbeat', ['heartbeat', '-config', '/etc/ployd.yaml']],
  ])('is `--config` of %s, wherever it stands: %j', async (path, words) => {
    expect(await parseCommandLine(words, '1.2.3')).toMatchObject({
      spec: { path },
      options: { config: '/etc/ployd.yaml' },
    });
  });
});
