// `reeve job list` and `show` on a node that has no section `jobs`.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeCommandsNode } from '../../../support/commands-node.ts';

describe('jobs of a node whose configuration has no section jobs', () => {
  it.each([['list'], ['list', '--all'], ['show', 'a'], ['logs', 'a'], ['cancel', '--yes', 'a']])(
    'job %s says that it is missing, with 78',
    async (...words) => {
      const node = makeCommandsNode();
      const end = await node.reeve('job', ...words);
      expect([end.status, end.stdout]).toEqual([78, '']);
      expect(end.stderr).toContain(`section jobs is missing in ${node.configFile}`);
    },
  );

  it('are told of where there are any, and where the configuration cannot be read', async () => {
    const node = makeCommandsNode();
    const damaged = join(node.stateDir, 'jobs/job-1');
    mkdirSync(damaged, { recursive: true });
    writeFileSync(join(damaged, 'claim.json'), '{');
    const list = await node.reeve('job', 'list');
    expect([list.status, list.stdout]).toEqual([0, expect.stringContaining('job-1')]);
    const other = makeCommandsNode();
    writeFileSync(other.configFile, 'commands: {');
    expect(await other.reeve('job', 'list')).toMatchObject({ status: 0, stdout: 'no job\n' });
    expect(await other.reeve('job', 'show', 'a')).toMatchObject({
      status: 65,
      stderr: expect.stringContaining('this node knows none of that id'),
    });
  });
});
