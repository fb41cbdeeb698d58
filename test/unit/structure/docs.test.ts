// What is written for people holds together: links lead somewhere, tables are aligned, no word is explained twice.
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { commands } from '../../../src/commands/registry.ts';

const root = resolve(import.meta.dirname, '../../..');
const files = [...globSync('*.md', { cwd: root }), ...globSync('docs/**/*.md', { cwd: root })].sort();
const linesOf = (file: string): string[] => readFileSync(join(root, file), 'utf8').split('\n');

/** Blocks of code have no links, headings or tables. */
function proseOf(file: string): string[] {
  let isCode = false;
  return linesOf(file).map((line) => {
    const isFence = /^\s*```/.test(line);
    if (isFence) isCode = !isCode;
    return isCode || isFence ? '' : line;
  });
}

const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

function anchorsOf(file: string): string[] {
  return proseOf(file).flatMap((line) => /^#+ (.*)$/.exec(line)?.slice(1).map(anchorOf) ?? []);
}

function brokenLinks(file: string): string[] {
  const links = [
    ...proseOf(file)
      .join('\n')
      .matchAll(/\]\(([^)\s]+)\)/g),
  ].map(([, link]) => link as string);
  return links.filter((link) => {
    if (/^https?:/.test(link)) return false;
    const [path = '', anchor] = link.split('#', 2);
    const target = path === '' ? file : relative(root, resolve(join(root, dirname(file)), path));
    if (!target.endsWith('.md')) return globSync(target, { cwd: root }).length === 0;
    return !files.includes(target) || (anchor !== undefined && !anchorsOf(target).includes(anchor));
  });
}

/** First lines of the tables whose cells do not stand below each other. */
function skewedTables(file: string): string[] {
  const tables = proseOf(file)
    .join('\n')
    .split(/\n(?!\|)/)
    .map((block) => block.split('\n').filter((line) => line.startsWith('|')));
  const barsOf = (row: string): string =>
    [...row.matchAll(/(?<!\\)\|/g)].map(({ index }) => [...row.slice(0, index)].length).join(' ');
  return tables.filter((rows) => new Set(rows.map(barsOf)).size > 1).map(([first]) => `${file}: ${first}`);
}

describe('the documents', () => {
  it.each(files)('%s has no link that leads nowhere', (file) => {
    expect(brokenLinks(file)).toEqual([]);
  });

  it('have aligned tables', () => {
    expect(files.flatMap(skewedTables)).toEqual([]);
  });

  it('are all reached from the README', () => {
    const reached = new Set<string>();
    const visit = (file: string): void => {
      if (reached.has(file) || !files.includes(file)) return;
      reached.add(file);
      for (const [, link] of proseOf(file)
        .join('\n')
        .matchAll(/\]\(([^)#\s]+\.md)/g)) {
        visit(relative(root, resolve(join(root, dirname(file)), link as string)));
      }
    };
    visit('README.md');
    expect(files.filter((file) => !reached.has(file) && file !== 'CHANGELOG.md')).toEqual([]);
  });
});

describe('ARCHITECTURE.md', () => {
  const text = linesOf('ARCHITECTURE.md').join('\n');
  const partOf = (heading: string): string => text.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';

  it('explains no word twice', () => {
    const words = [...partOf('The dictionary').matchAll(/^\| ([a-z][^|]*?) +\|/gm)].map(([, word]) => word);
    expect(words.length).toBeGreaterThan(40);
    expect(words.filter((word, at) => words.indexOf(word) !== at)).toEqual([]);
  });

  it('counts its decisions', () => {
    const numbers = [...partOf('Decisions').matchAll(/^(\d+)\. \*\*/gm)].map(([, number]) => Number(number));
    expect(numbers).toEqual(numbers.map((_, at) => at + 1));
    const named = [...text.matchAll(/decision (\d+)/g)].map(([, number]) => Number(number));
    expect(named.filter((number) => number > numbers.length)).toEqual([]);
  });
});

describe('README.md', () => {
  it('has every command that is for people', () => {
    const rows = linesOf('README.md').filter((line) => line.startsWith('| `'));
    const told = rows.flatMap((row) => {
      const names = [
        ...row
          .split(' | ', 1)
          .join()
          .matchAll(/`([a-z]+(?:[- ][a-z]+)*)/g),
      ].map(([, name = '']) => name.trim());
      const [group = ''] = (names[0] ?? '').split(' ', 1);
      return names.flatMap((name) => [name, `${group} ${name}`]);
    });
    const paths = commands.filter(({ hidden }) => hidden !== true).map(({ path }) => path);
    const isTold = (path: string): boolean =>
      told.some((name) => name === path || name.startsWith(`${path} `));
    expect(paths.filter((path) => !isTold(path))).toEqual([]);
  });
});
