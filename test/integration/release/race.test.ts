// Deploys that meet each other, and deploys that die: every document stays whole, and nothing of anybody's is lost.
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseDesired } from '../../../src/lib/cluster/desired.ts';
import { serviceKey } from '../../../src/lib/cluster/wire.ts';
import { aDesired, aService } from '../../support/builders.ts';
import { createOperator, type Operator } from '../../support/operator.ts';
import { startProcess } from '../../support/programs.ts';

const main = join(import.meta.dirname, '../../../src/commands/main.ts');

describe('deploys at the same instant', () => {
  it('of two projects to one node are both there afterwards, over and over', async () => {
    const operator = createOperator(['web-1']);
    for (let round = 1; round <= 5; round++) {
      const ends = await Promise.all(
        ['blog', 'shop'].map((project) => operator.reeve('deploy', aFile(operator, project, `img:${round}`))),
      );
      expect(ends.map(({ status }) => status)).toEqual([0, 0]);
      const { services } = parseDesired(operator.stored('nodes/web-1/desired.json') ?? '');
      const images = Object.fromEntries(services.map((service) => [serviceKey(service), service.image]));
      expect(images).toEqual({ 'blog/web': `img:${round}`, 'shop/web': `img:${round}` });
    }
  });

  it('of four projects to one node, one of them a removal, end as if one came after the other', async () => {
    const operator = createOperator(['web-1']);
    operator.store('nodes/web-1/desired.json', aDesired([aService({ project: 'old' })]));
    const ends = await Promise.all([
      ...['a', 'b', 'c'].map((project) => operator.reeve('deploy', aFile(operator, project, 'img:1'))),
      operator.reeve('deploy', '--remove', 'old', '--yes'),
    ]);
    expect(ends.map(({ status }) => status)).toEqual([0, 0, 0, 0]);
    const { services } = parseDesired(operator.stored('nodes/web-1/desired.json') ?? '');
    expect(services.map(serviceKey).sort()).toEqual(['a/web', 'b/web', 'c/web']);
  });
});

describe('a deploy that is killed', { timeout: 300_000 }, () => {
  it('at any of its renames leaves every document old or new, and the next one finishes the work', async () => {
    const operator = createOperator(['web-1', 'web-2']);
    const before = aDesired([aService({ image: 'img:1' }), aService({ service: 'old' })]);
    for (const node of ['web-1', 'web-2'])
      operator.store(`nodes/${node}/desired.json`, { ...before, nodeId: node });
    const file = aFile(operator, 'blog', 'img:2', ['web-1', 'web-2']);
    await operator.reeve('deploy', file, '--dry-run');
    cpSync(join(operator.root, 'store'), join(operator.root, 'template'), { recursive: true });
    let kills = 0;
    for (let n = 1; n <= 40; n++) {
      resetStore(operator);
      if (!(await killAtRename(operator, file, n))) break;
      kills++;
      for (const node of ['web-1', 'web-2']) expect(['old', 'new']).toContain(stateOf(operator, node));
      // Nobody waits here until the dead one's turn is over.
      rmSync(join(operator.root, 'store/.locks/deploy.lock'), { recursive: true, force: true });
      const end = await operator.reeve('deploy', file);
      expect(end.status).toBe(0);
      expect([stateOf(operator, 'web-1'), stateOf(operator, 'web-2')]).toEqual(['new', 'new']);
    }
    expect(kills).toBeGreaterThanOrEqual(6);
    expect(kills).toBeLessThan(40);
  });

  it('announces a removal before it can be seen', async () => {
    const operator = createOperator(['web-1']);
    operator.store('nodes/web-1/desired.json', aDesired([aService(), aService({ service: 'old' })]));
    const file = aFile(operator, 'blog', 'img:2');
    await operator.reeve('deploy', file, '--dry-run');
    cpSync(join(operator.root, 'store'), join(operator.root, 'template'), { recursive: true });
    for (let n = 1; n <= 40; n++) {
      resetStore(operator);
      const killed = await killAtRename(operator, file, n);
      const isAnnounced = operator.stored('nodes/web-1/removals.json')?.includes('blog/old') ?? false;
      const isGone = !keysOf(operator, 'web-1').includes('blog/old');
      expect([isAnnounced, isGone]).not.toEqual([false, true]);
      if (!killed) return;
    }
    throw new Error('the deploy was still being killed after 40 runs');
  });
});

function aFile(operator: Operator, project: string, image: string, nodes = ['web-1']): string {
  const text = `services:\n  - { project: ${project}, service: web, image: "${image}", nodes: [${nodes}] }\n`;
  return operator.write(`${project}.yaml`, text);
}

function resetStore({ root }: Operator): void {
  rmSync(join(root, 'store'), { recursive: true });
  cpSync(join(root, 'template'), join(root, 'store'), { recursive: true });
}

/** True if the run was killed; false if it had fewer renames than that. */
async function killAtRename(operator: Operator, file: string, n: number): Promise<boolean> {
  const log = join(operator.root, 'strace.log');
  const renames = '?rename,?renameat,renameat2';
  const tracer = startProcess(
    'strace',
    [
      ...['-f', '-o', log, '-e', `trace=${renames}`, '-e', `inject=${renames}:signal=KILL:when=${n}`],
      ...[process.execPath, main, 'deploy', file],
    ],
    { ...operator.environment, UV_THREADPOOL_SIZE: '1' },
  );
  tracer.child.stdin.end();
  await tracer.ended;
  return readFileSync(log, 'utf8').includes('killed by SIGKILL');
}

function keysOf(operator: Operator, node: string): string[] {
  return parseDesired(operator.stored(`nodes/${node}/desired.json`) ?? '').services.map(serviceKey);
}

function stateOf(operator: Operator, node: string): string {
  const { services, rejected } = parseDesired(operator.stored(`nodes/${node}/desired.json`) ?? '');
  const state = JSON.stringify([services.map((service) => [serviceKey(service), service.image]), rejected]);
  const known: Record<string, string> = {
    '[[["blog/web","img:1"],["blog/old","registry.example/blog/web:1.0.0"]],[]]': 'old',
    '[[["blog/web","img:2"]],[]]': 'new',
  };
  return known[state] ?? state;
}
