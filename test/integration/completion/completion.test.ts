// The scripts that `reeve completion` prints, in the shells they are for.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { commands } from '../../../src/commands/registry.ts';
import { makeMachine } from '../../support/machine.ts';
import { makeTempDir } from '../../support/temp.ts';

const scripts: Record<string, string> = {};
const isInstalled = (shell: string): boolean => spawnSync(shell, ['--version']).status === 0;

beforeAll(() => {
  const main = join(import.meta.dirname, '../../../src/commands/main.ts');
  for (const shell of ['bash', 'zsh', 'fish']) {
    const end = spawnSync(process.execPath, [main, 'completion', shell], { encoding: 'utf8' });
    expect([end.status, end.stderr]).toEqual([0, '']);
    scripts[shell] = end.stdout;
  }
});

/** What bash offers for the last word. */
function complete(words: readonly string[], cwd = makeTempDir()): string[] {
  const quoted = ['reeve', ...words].map((word) => `'${word}'`).join(' ');
  const driver = `COMP_WORDS=(${quoted}); COMP_CWORD=${words.length}; _reeve; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const end = spawnSync('bash', ['--norc', '-c', `${scripts['bash']}\n${driver}`], { encoding: 'utf8', cwd });
  expect(end.stderr).toBe('');
  return end.stdout.split('\n').filter((word) => word !== '');
}

const globals = ['--config', '--json', '--debug', '--quiet', '--help'];

describe('bash', () => {
  it('parses its script', () => {
    const end = spawnSync('bash', ['-n'], { input: scripts['bash'] ?? '', encoding: 'utf8' });
    expect([end.status, end.stderr]).toEqual([0, '']);
  });

  it('offers every command that is for people, and none that is for units', () => {
    const shown = commands.filter(({ hidden }) => hidden !== true).map(({ path }) => path.split(' ')[0]);
    expect(complete([''])).toEqual([...new Set(shown)]);
    expect(complete(['hea'])).toEqual(['heartbeat']);
    expect(complete(['fail'])).toEqual([]);
  });

  it('offers the second words of a group', () => {
    expect(complete(['config', ''])).toEqual(['check', 'show', 'schema']);
    expect(complete(['lock', 'l'])).toEqual(['list']);
    expect(complete(['completion', ''])).toEqual(['bash', 'zsh', 'fish']);
  });

  it('offers a command’s own flags and those of all', () => {
    expect(complete(['heartbeat', '-'])).toEqual(['--wait', ...globals]);
    expect(complete(['units', 'render', '--'])).toEqual(['--diff', '--write', '--root', ...globals]);
    expect(complete(['--json', 'status', '--c'])).toEqual(['--cluster', '--config']);
    expect(complete(['-'])).toEqual(globals);
  });

  it('tells a flag’s value from the command’s words', () => {
    expect(complete(['--config', 'status', 'config', 'ch'])).toEqual(['check']);
    expect(complete(['hold', '--for', '1h', '--r'])).toEqual(['--reason']);
    expect(complete(['init', '--node', ''])).toEqual([]);
  });

  it('offers files where files are meant, and programs after --', () => {
    const cwd = makeTempDir();
    writeFileSync(join(cwd, 'blog.yaml'), '');
    mkdirSync(join(cwd, 'blogs'));
    expect(complete(['deploy', 'blog'], cwd).sort()).toEqual(['blog.yaml', 'blogs']);
    expect(complete(['--config', 'blog.'], cwd)).toEqual(['blog.yaml']);
    expect(complete(['status', 'blog'], cwd)).toEqual([]);
    expect(complete(['lock', 'reconcile', '--', 'systemct'], cwd)).toContain('systemctl');
  });
});

describe.runIf(isInstalled('zsh'))('zsh', () => {
  it('parses its script', () => {
    const end = spawnSync('zsh', ['-n'], { input: scripts['zsh'] ?? '', encoding: 'utf8' });
    expect([end.status, end.stderr]).toEqual([0, '']);
  });
});

describe.runIf(isInstalled('fish'))('fish', () => {
  it('parses its script', () => {
    const end = spawnSync('fish', ['--no-execute'], { input: scripts['fish'] ?? '', encoding: 'utf8' });
    expect([end.status, end.stderr]).toEqual([0, '']);
  });
});

describe('another shell', () => {
  it('is refused by name', async () => {
    const end = await makeMachine().reeve('completion', 'csh');
    expect([end.status, end.stderr]).toEqual([
      64,
      'reeve: there is no completion for "csh": bash, zsh and fish have one\n',
    ]);
  });
});
