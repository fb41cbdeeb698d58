// A person at a terminal, where stdout and stderr are one, reads each thing once; whoever keeps them apart has the whole answer.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { makeActionsNode } from '../../support/actions-node.ts';
import { startProcess } from '../../support/programs.ts';

function occurrences(text: string, part: string): number {
  return text.split(part).length - 1;
}

it('D9 D10 tells on a terminal each end and each result that was sent once', async () => {
  const node = makeActionsNode();
  for (const name of ['source', 'events']) mkdirSync(join(node.root, name));
  const atTerminal = async (command: string): Promise<string> =>
    (
      await startProcess('script', ['-qefc', `${inject('reeveBin')} ${command}`, '/dev/null'], {
        ...node.env,
      }).ended
    ).stdout;
  node.writeScript('exit 4');
  node.put('web');
  expect(occurrences(await atTerminal('deploy-action'), 'redeploy-vps-web: failed')).toBe(1);
  expect(occurrences(await atTerminal('rsync-pull'), 'sent: evt-vps-')).toBe(1);
  expect(await atTerminal('rsync-pull')).toContain('nothing new, and nothing to send');

  node.put('db');
  const apart = await node.reeve('deploy-action');
  expect([apart.stdout, apart.stderr].map((text) => occurrences(text, 'redeploy-vps-db: failed'))).toEqual([
    1, 1,
  ]);
  writeFileSync(join(node.root, 'source/redeploy-vps-shop.json'), '{');
  const pulled = await node.reeve('rsync-pull');
  expect(pulled.stdout).toContain('refused: redeploy-vps-shop.json\n');
  expect(pulled.stderr).toContain('warning: refused: redeploy-vps-shop.json why=');
});
