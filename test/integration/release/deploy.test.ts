// Deploys as an operator runs them: whole processes against a store in a directory.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { DesiredService } from '../../../src/lib/cluster/wire.ts';
import { aDesired, aService } from '../../support/builders.ts';
import { createOperator, type Operator } from '../../support/operator.ts';

describe('deploy', () => {
  it('tells what changes node by node, writes it, keeps what it replaces, and wakes the ticks', async () => {
    const operator = createOperator(['web-1', 'web-2']);
    const before = aDesired([aService({ project: 'shop' }), aService({ service: 'old' })]);
    operator.store('nodes/web-1/desired.json', before);
    const file = operator.write('blog.yaml', aFile('blog', { web: ['web-1', 'web-2'] }));
    const end = await operator.reeve('deploy', file);
    expect({ status: end.status, stdout: end.stdout, stderr: end.stderr }).toEqual({
      status: 0,
      stdout: '3 changes on web-1, web-2\n',
      stderr: 'web-1: remove blog/old\nweb-1: add blog/web\nweb-2: add blog/web\n',
    });
    const web = aService({ image: 'img:1' });
    expect(servicesOf(operator, 'web-1')).toEqual([aService({ project: 'shop' }), web]);
    expect(servicesOf(operator, 'web-2')).toEqual([web]);
    expect(operator.stored('nodes/web-1/deploys/2026-06-04T03-00-00-000Z.json')).toBe(
      `${JSON.stringify(before, null, 2)}\n`,
    );
    expect(readdirSync(join(operator.root, 'run/wake')).sort()).toEqual(['edge', 'reconcile']);
    expect(removalsOf(operator, 'web-1')).toEqual(['blog/old']);
    expect(operator.stored('nodes/web-2/removals.json')).toBeUndefined();
  });

  it('a second time changes nothing and writes nothing (R4)', async () => {
    const operator = createOperator(['web-1']);
    const file = operator.write('blog.yaml', aFile('blog', { web: ['web-1'] }));
    await operator.reeve('deploy', file);
    const before = operator.stored('nodes/web-1/desired.json');
    const end = await operator.reeve('deploy', file, '--json');
    expect(end.status).toBe(0);
    expect(JSON.parse(end.stdout)).toEqual({
      version: 1,
      command: 'deploy',
      outcome: 'nothing-to-do',
      nodes: [],
    });
    expect(operator.stored('nodes/web-1/desired.json')).toBe(before);
    expect(readdirSync(join(operator.root, 'store/nodes/web-1/deploys'))).toHaveLength(1);
  });

  it('with --dry-run tells the changes, exits 2 and writes nothing', async () => {
    const operator = createOperator(['web-1']);
    const file = operator.write('blog.yaml', aFile('blog', { web: ['web-1'] }));
    const end = await operator.reeve('deploy', file, '--dry-run');
    expect([end.status, end.stdout]).toEqual([2, 'web-1: add blog/web\n']);
    expect(operator.stored('nodes/web-1/desired.json')).toBeUndefined();
  });

  it('with --no-notify wakes nobody', async () => {
    const operator = createOperator(['web-1']);
    const file = operator.write('blog.yaml', aFile('blog', { web: ['web-1'] }));
    await operator.reeve('deploy', file, '--no-notify');
    expect(() => readdirSync(join(operator.root, 'run/wake'))).toThrow('ENOENT');
  });

  it('moves a service to another node and leaves an empty list behind', async () => {
    const operator = createOperator(['web-1', 'web-2']);
    await operator.reeve('deploy', operator.write('a.yaml', aFile('blog', { web: ['web-1'] })));
    await operator.reeve('deploy', operator.write('b.yaml', aFile('blog', { web: ['web-2'] })));
    expect([servicesOf(operator, 'web-1'), servicesOf(operator, 'web-2')]).toEqual([
      [],
      [aService({ image: 'img:1' })],
    ]);
  });

  it('with --service touches that one alone, and takes no other name', async () => {
    const operator = createOperator(['web-1']);
    operator.store('nodes/web-1/desired.json', aDesired([aService({ service: 'api' }), aService()]));
    const file = operator.write('blog.yaml', aFile('blog', { web: ['web-1'], api: ['web-1'] }));
    const end = await operator.reeve('deploy', file, '--service', 'blog/web');
    expect(end.stdout).toBe('1 change on web-1\n');
    expect(servicesOf(operator, 'web-1')).toEqual([
      aService({ service: 'api' }),
      aService({ image: 'img:1' }),
    ]);
    const refused = await operator.reeve('deploy', file, '--service', 'blog/wbe');
    expect([refused.status, refused.stderr]).toEqual([
      65,
      `reeve: cannot deploy "${file}": it has no service "blog/wbe"\n`,
    ]);
  });

  it('works in another cluster below its own prefix', async () => {
    const operator = createOperator(['web-1'], { clusterId: 'eu' });
    const text = aFile('blog', { web: ['web-1'] }).replace('services:', 'cluster: eu\nservices:');
    const end = await operator.reeve('deploy', operator.write('blog.yaml', text));
    expect(end.status).toBe(0);
    expect(operator.stored('clusters/eu/nodes/web-1/desired.json')).toBeDefined();
    expect(operator.stored('nodes/web-1/desired.json')).toBeUndefined();
  });

  it('of a node that the store does not know is refused by name', async () => {
    const operator = createOperator(['web-1', 'web-2']);
    const file = operator.write('blog.yaml', aFile('blog', { web: ['web-1', 'wbe-2'] }));
    const end = await operator.reeve('deploy', file);
    expect([end.status, end.stderr]).toEqual([
      65,
      `reeve: cannot deploy "${file}": the store does not know "wbe-2"; it knows web-1, web-2\n`,
    ]);
    expect(operator.stored('nodes/web-1/desired.json')).toBeUndefined();
  });

  it('on an edge is refused', async () => {
    const operator = createOperator(['web-1']);
    operator.store('nodes/edge-1/node.json', { nodeId: 'edge-1', role: 'edge' });
    const file = operator.write('blog.yaml', aFile('blog', { web: ['edge-1'] }));
    const end = await operator.reeve('deploy', file);
    expect([end.status, end.stderr]).toEqual([
      65,
      `reeve: cannot deploy "${file}": node "edge-1" is an edge, and edges run no services\n`,
    ]);
  });

  it('does not write over a document that it cannot read, and goes on elsewhere (R9)', async () => {
    const operator = createOperator(['web-1', 'web-2']);
    operator.write('store/nodes/web-1/desired.json', '\0\0\0');
    const file = operator.write('blog.yaml', aFile('blog', { web: ['web-1', 'web-2'] }));
    const end = await operator.reeve('deploy', file);
    expect([end.status, end.stdout]).toEqual([
      1,
      '1 change on web-2\nweb-1: cannot read "nodes/web-1/desired.json": ' +
        'it holds NUL bytes, as a file does that was cut off by a crash\n',
    ]);
    expect(operator.stored('nodes/web-1/desired.json')).toBe('\0\0\0');
  });
});

describe('deploy --remove', () => {
  it('wants --yes where nobody can be asked, then removes the project everywhere and nothing else', async () => {
    const operator = createOperator(['web-1', 'web-2']);
    operator.store('nodes/web-1/desired.json', aDesired([aService(), aService({ project: 'shop' })]));
    operator.store('nodes/web-2/desired.json', aDesired([aService()]));
    const refused = await operator.reeve('deploy', '--remove', 'blog');
    expect(refused.status).toBe(64);
    expect(refused.stderr).toContain(
      'cannot ask "remove project blog everywhere?" without a terminal: say --yes',
    );
    expect(servicesOf(operator, 'web-2')).toEqual([aService()]);
    const end = await operator.reeve('deploy', '--remove', 'blog', '--yes');
    expect(end.status).toBe(0);
    expect(servicesOf(operator, 'web-1')).toEqual([aService({ project: 'shop' })]);
    expect(servicesOf(operator, 'web-2')).toEqual([]);
    expect(removalsOf(operator, 'web-2')).toEqual(['blog/web']);
  });

  it('does not go together with a file', async () => {
    const operator = createOperator(['web-1']);
    const end = await operator.reeve('deploy', 'x.yaml', '--remove', 'blog');
    expect([end.status, end.stderr]).toEqual([
      64,
      'reeve: --remove takes a project away: it needs no file\n',
    ]);
  });
});

describe('deploy --wait', () => {
  it('ends when every node says it has converged', async () => {
    const operator = createOperator(['web-1']);
    const file = operator.write('blog.yaml', aFile('blog', { web: ['web-1'] }));
    const program = operator.start('deploy', '--wait', file);
    await program.waitFor('web-1: add blog/web');
    await until(() => operator.stored('nodes/web-1/desired.json') !== undefined);
    tellProgress(operator, 'web-1', { converged: true });
    const end = await program.ended;
    expect([end.status, end.stdout]).toEqual([0, '1 change on web-1\n']);
  });

  it('exits 1 with the message of each of its services that failed', async () => {
    const operator = createOperator(['web-1']);
    const file = operator.write('blog.yaml', aFile('blog', { web: ['web-1'] }));
    const program = operator.start('deploy', file, '--wait=60');
    await until(() => operator.stored('nodes/web-1/desired.json') !== undefined);
    const failing = [{ project: 'blog', service: 'web', message: 'cannot pull "img:1": not found' }];
    tellProgress(operator, 'web-1', { converged: false, failing });
    const end = await program.ended;
    expect([end.status, end.stdout]).toEqual([
      1,
      '1 change on web-1\nweb-1: blog/web: cannot pull "img:1": not found\n',
    ]);
  });

  it('waits for what was deployed before, where nothing is left to change', async () => {
    const operator = createOperator(['web-1']);
    const file = operator.write('blog.yaml', aFile('blog', { web: ['web-1'] }));
    await operator.reeve('deploy', file);
    const late = await operator.reeve('deploy', file, '--wait=0');
    expect([late.status, late.stdout]).toEqual([
      1,
      'nothing to change\nweb-1: not there after 0ms: it has not told how far it is; never seen\n',
    ]);
    tellProgress(operator, 'web-1', { converged: true });
    const end = await operator.reeve('deploy', file, '--wait=60');
    expect([end.status, end.stdout]).toEqual([0, 'nothing to change\n']);
  });
});

describe('rollback and restart', () => {
  it('go back to earlier images and say to which', async () => {
    const operator = createOperator(['web-1']);
    for (const image of ['img:1', 'img:2', 'img:3']) {
      const text = aFile('blog', { web: ['web-1'], api: ['web-1'] }).replace('img:1', image);
      await operator.reeve('deploy', operator.write('blog.yaml', text));
    }
    const back = await operator.reeve('rollback', 'blog/web', '--to', '2');
    expect(back.status).toBe(0);
    expect(back.stderr).toMatch(/^web-1: blog\/web goes back to the deploy of \S+Z \(img:1\)\n/);
    expect(imagesOf(operator, 'web-1')).toEqual(['img:1', 'img:1']);
    const forth = await operator.reeve('rollback', 'blog/web');
    expect(forth.status).toBe(0);
    expect(imagesOf(operator, 'web-1')).toEqual(['img:3', 'img:1']);
  });

  it('tell of a node that has no earlier deploy', async () => {
    const operator = createOperator(['web-1']);
    await operator.reeve('deploy', operator.write('blog.yaml', aFile('blog', { web: ['web-1'] })));
    const end = await operator.reeve('rollback', 'blog/web');
    expect([end.status, end.stdout]).toEqual([
      1,
      'nothing to change\nweb-1: there is no earlier deploy of blog/web\n',
    ]);
    const unknown = await operator.reeve('rollback', 'blog/nix');
    expect([unknown.status, unknown.stderr]).toEqual([65, 'reeve: cannot find "blog/nix": no node has it\n']);
  });

  it('restart on every node that has the service, and keep the rest', async () => {
    const operator = createOperator(['web-1', 'web-2']);
    const file = operator.write('blog.yaml', aFile('blog', { web: ['web-1', 'web-2'], api: ['web-1'] }));
    await operator.reeve('deploy', file);
    const end = await operator.reeve('restart', 'blog/web', '--yes');
    expect(end.status).toBe(0);
    const [web, api] = servicesOf(operator, 'web-1') as [DesiredService, DesiredService];
    expect(web).toEqual({ ...aService({ image: 'img:1' }), restartAt: expect.stringMatching(/Z$/) });
    expect(api.restartAt).toBeUndefined();
    expect(servicesOf(operator, 'web-2')).toEqual([web]);
    const again = await operator.reeve('deploy', file);
    expect(again.stdout).toBe('nothing to change\n');
  });
});

function aFile(project: string, services: Record<string, string[]>): string {
  const lines = Object.entries(services).map(
    ([service, nodes]) =>
      `  - { project: ${project}, service: ${service}, image: "img:1", nodes: [${nodes.join(', ')}] }`,
  );
  return `services:\n${lines.join('\n')}\n`;
}

function servicesOf(operator: Operator, node: string): DesiredService[] {
  return (JSON.parse(operator.stored(`nodes/${node}/desired.json`) ?? '') as { services: DesiredService[] })
    .services;
}

function imagesOf(operator: Operator, node: string): string[] {
  return servicesOf(operator, node).map(({ image }) => image);
}

function removalsOf(operator: Operator, node: string): string[] {
  return (JSON.parse(operator.stored(`nodes/${node}/removals.json`) ?? '') as { services: string[] })
    .services;
}

function tellProgress(
  operator: Operator,
  node: string,
  progress: { converged: boolean; failing?: unknown[] },
): void {
  const { updatedAt } = JSON.parse(operator.stored(`nodes/${node}/desired.json`) ?? '') as {
    updatedAt: string;
  };
  operator.store(`nodes/${node}/reeve.json`, {
    version: 1,
    desired: { updatedAt },
    failing: [],
    ...progress,
  });
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 20));
}
