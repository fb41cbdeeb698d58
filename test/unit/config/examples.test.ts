// What people are shown to write is right: nobody has to find out by `reeve config check`.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { renderConfig } from '../../../src/lib/init/render.ts';
import { createConfigHome } from '../../support/config-home.ts';

const wanted = {
  machineId: 7,
  token: expect.stringMatching(/^THE-/),
  centralBaseUrl: 'https://agenda.example',
};

describe('the example of a section commands', () => {
  it('in docs/commands.md is enough (A27)', async () => {
    const manual = readFileSync(new URL('../../../docs/commands.md', import.meta.url), 'utf8');
    const [, example = ''] = /```yaml\n(commands:[\s\S]*?)```/.exec(manual) ?? [];
    const home = await createConfigHome(example);
    expect([await home.problems(), await home.warnings()]).toEqual([[], []]);
    expect((await home.load()).commands).toMatchObject(wanted);
  });

  it('in a file of `reeve init` is enough without its comment signs (A27)', async () => {
    const places = { store: 'file:///s', secrets: 'file:///k', logs: 'file:///l', backups: 'file:///b' };
    const node = { nodeId: 'web-1', roles: ['app'] as const, clusterId: 'default', region: 'local' };
    const text = renderConfig({ ...node, ...places, notify: 'none' });
    expect(text).toContain('\n#commands:\n#  ');
    const home = await createConfigHome(
      text.replace(/^#commands:\n(# {2}.*\n)+/m, (lines) => lines.replace(/^#/gm, '')),
    );
    expect(await home.problems()).toEqual([]);
    expect((await home.load()).commands).toMatchObject(wanted);
  });
});
