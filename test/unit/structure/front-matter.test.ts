// A page about a service begins with what other tools of a homelab read of it (D47).
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const docs = resolve(import.meta.dirname, '../../../docs');
const textOf = (file: string): string => readFileSync(join(docs, file), 'utf8');
const matterOf = (file: string): string | undefined => /^---\n(.*?)\n---\n\n# /s.exec(textOf(file))?.[1];

describe('the page of actions', () => {
  const matter = parse(matterOf('actions.md') ?? '') as Record<string, unknown> & { links: string[] };

  it('has the front matter of a service, and nothing else in it (D47)', () => {
    expect(matter).toEqual({
      ...{ okf: '0.1', type: 'service', visibility: 'private', status: 'active' },
      updated: expect.stringMatching(/^20\d\d-\d\d-\d\d$/),
      links: [expect.any(String), expect.any(String)],
    });
  });

  it('leads to a decision and to a runbook of its installation, which are there (D47)', () => {
    const [decision = '', install = ''] = matter.links;
    expect(matter.links.filter((link) => !existsSync(join(docs, link)))).toEqual([]);
    expect(textOf(decision)).toMatch(/^# Decision: /);
    expect(textOf(install)).toMatch(/^# Install: /);
  });

  it('is the only one: what begins like that is a service', () => {
    expect(globSync('**/*.md', { cwd: docs }).filter((file) => textOf(file).startsWith('---'))).toEqual([
      'actions.md',
    ]);
  });
});
