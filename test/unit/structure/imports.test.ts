// Who may touch what, read off the sources: the rules that no type can hold.
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../../../src');
const sources = globSync('**/*.ts', { cwd: root });
const textOf = (file: string): string => readFileSync(join(root, file), 'utf8');

/** Files that a file loads, at once or later; types vanish in the build and do not count. */
function importsOf(file: string): string[] {
  const text = textOf(file).replaceAll(/import type [^;]*;/g, '');
  const found = text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g);
  return [...found].map(([, path]) => relative(root, resolve(join(root, dirname(file)), path as string)));
}

function reachableFrom(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const next of importsOf(file)) reachableFrom(next, seen);
  return seen;
}

const roomsOf = (files: Iterable<string>): Set<string> => new Set([...files].map((file) => dirname(file)));

describe('the sources', () => {
  it('speak to the engine’s socket in one place only (L1)', () => {
    const speakers = sources.filter((file) => /\bsocketPath\b/.test(textOf(file)));
    expect(roomsOf(speakers)).toEqual(new Set(['lib/docker']));
  });

  it('have no way from an app node’s tick to Caddy (L9, L27)', () => {
    const reached = [...reachableFrom('commands/reconcile.ts')];
    expect(reached).toContain('lib/docker/transport.ts');
    expect(reached.filter((file) => /^lib\/(edge|caddy|proxy)\//.test(file))).toEqual([]);
    const callers = reached.filter((file) => /config\.caddy|cluster\.caddy\.admin/.test(textOf(file)));
    expect(callers.filter((file) => !file.startsWith('lib/config/'))).toEqual([]);
  });

  it('plan without files, processes, network or clock (L20, L181)', () => {
    const planners = sources.filter(
      (file) => /(^|\/)plan(-[a-z]+)?\.ts$/.test(file) && file.startsWith('lib/'),
    );
    expect(planners.length).toBeGreaterThan(5);
    const impure = planners.filter((file) =>
      /from 'node:(?!crypto)|from 'execa'|Date\.now\(|new Date\(\)|Math\.random|process\./.test(textOf(file)),
    );
    expect(impure).toEqual([]);
  });
});
