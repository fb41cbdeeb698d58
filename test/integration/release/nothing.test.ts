// Releases that find nothing to change, or no file: what was meant is told.
import { describe, expect, it } from 'vitest';
import { aDesired, aService } from '../../support/builders.ts';
import { createOperator } from '../../support/operator.ts';

describe('a release', () => {
  it('of a file that is not there says so in its own words', async () => {
    const end = await createOperator(['web-1']).reeve('deploy', 'no.yaml');
    expect([end.status, end.stderr]).toEqual([65, 'reeve: cannot read "no.yaml": there is no such file\n']);
  });

  it('that removes a project nobody has warns of it, as it may be misspelt', async () => {
    const end = await createOperator(['web-1']).reeve('deploy', '--remove', 'blgo', '--yes');
    expect([end.status, end.stdout, end.stderr]).toEqual([
      0,
      'nothing to change\n',
      'warning: no node has anything of project "blgo"\n',
    ]);
  });

  it('that goes back further than what is kept says how much that is', async () => {
    const operator = createOperator(['web-1']);
    operator.store('nodes/web-1/desired.json', aDesired([aService()]));
    const end = await operator.reeve('rollback', 'blog/web', '--to', '2');
    expect([end.status, end.stdout]).toEqual([
      1,
      'nothing to change\nweb-1: there are no 2 earlier deploys of blog/web that differ; five states of a node are kept\n',
    ]);
  });
});
