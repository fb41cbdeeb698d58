// A small git repository as the server packs it for a run: the work tree with its .git, in a tar.gz.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Snapshot } from './model.ts';

const gitEnv = {
  PATH: process.env['PATH'],
  HOME: '/nonexistent',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_AUTHOR_NAME: 'Somebody',
  GIT_AUTHOR_EMAIL: 'somebody@example.invalid',
  GIT_AUTHOR_DATE: '1700000000 +0000',
  GIT_COMMITTER_NAME: 'Somebody',
  GIT_COMMITTER_EMAIL: 'somebody@example.invalid',
  GIT_COMMITTER_DATE: '1700000000 +0000',
};

const defaultFiles = { 'README.md': '# Example\n', 'src/main.txt': 'one\ntwo\nthree\n' };

/** The same files always give the same commit. */
export function createSnapshot(files: Readonly<Record<string, string>> = defaultFiles): Snapshot {
  const directory = mkdtempSync(join(tmpdir(), 'reeve-test-repository-'));
  const git = (...args: string[]): string =>
    execFileSync('git', ['-C', directory, ...args], { encoding: 'utf8', env: gitEnv, stdio: 'pipe' }).trim();
  try {
    git('init', '-q', '-b', 'main');
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(directory, path)), { recursive: true });
      writeFileSync(join(directory, path), content);
    }
    git('add', '-A');
    git('commit', '-q', '-m', 'begin');
    const tarGz = packDirectory(directory);
    return { commitSha: git('rev-parse', 'HEAD'), tarGz };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function packDirectory(directory: string): Buffer {
  return execFileSync('tar', ['-C', directory, '-czf', '-', '.'], { maxBuffer: 1 << 28 });
}

/** A bundle of files as a spec names it: by the beginning of its hash. */
export function packFiles(files: Readonly<Record<string, string>>): Buffer {
  const directory = mkdtempSync(join(tmpdir(), 'reeve-test-bundle-'));
  try {
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(directory, path)), { recursive: true });
      writeFileSync(join(directory, path), content);
    }
    return packDirectory(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
