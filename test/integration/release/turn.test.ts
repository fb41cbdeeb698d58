// Operators at one store: they take turns, a turn whose holder is gone ends by itself, and nobody is stopped by one.
import { existsSync, mkdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { parseDesired } from '../../../src/lib/cluster/desired.ts';
import { serviceKey } from '../../../src/lib/cluster/wire.ts';
import { aDesired, aService } from '../../support/builders.ts';
import { createOperator, type Operator } from '../../support/operator.ts';
import { startProcess } from '../../support/programs.ts';

const lockOf = ({ root }: Operator): string => join(root, 'store/.locks/deploy.lock');

function aFile(operator: Operator, project: string): string {
  const text = `services:\n  - { project: ${project}, service: web, image: "img:1", nodes: [web-1] }\n`;
  return operator.write(`${project}.yaml`, text);
}

/** As another host holds it, whose last sign of life was so long ago. */
function holdFor(operator: Operator, agoMs: number): void {
  mkdirSync(lockOf(operator), { recursive: true });
  const seen = new Date(Date.now() - agoMs);
  utimesSync(lockOf(operator), seen, seen);
}

const servicesOf = (operator: Operator): string[] =>
  parseDesired(operator.stored('nodes/web-1/desired.json') ?? '')
    .services.map(serviceKey)
    .sort();

describe('deploys at once', () => {
  // A holder that stands still for three seconds is taken for gone.
  it('queue up: each keeps the state that the one before it has written (O56)', { retry: 2 }, async () => {
    const operator = createOperator(['web-1']);
    const projects = ['a', 'b', 'c', 'd'];
    const ends = await Promise.all(
      projects.map((project) => operator.reeve('deploy', aFile(operator, project), '--debug')),
    );
    expect(ends.map(({ status }) => status)).toEqual([0, 0, 0, 0]);
    expect(ends.filter(({ stderr }) => /merging again|going on/.test(stderr))).toEqual([]);
    expect(servicesOf(operator)).toEqual(['a/web', 'b/web', 'c/web', 'd/web']);
    expect(existsSync(lockOf(operator))).toBe(false);
  });
});

describe('the lock of an operator', () => {
  it('that is gone blocks nobody', async () => {
    const operator = createOperator(['web-1']);
    holdFor(operator, 6_000);
    const began = performance.now();
    const end = await operator.reeve('deploy', aFile(operator, 'blog'));
    expect([end.status, servicesOf(operator)]).toEqual([0, ['blog/web']]);
    expect(end.stderr).not.toContain('going on');
    expect(performance.now() - began).toBeLessThan(9_000);
  });

  it('is taken by the built program, too', async () => {
    const operator = createOperator(['web-1']);
    const began = performance.now();
    holdFor(operator, 0);
    const { environment } = operator;
    const deploy = startProcess(inject('reeveBin'), ['deploy', aFile(operator, 'blog')], environment);
    deploy.child.stdin.end();
    const end = await deploy.ended;
    expect([end.status, end.stderr.includes('going on')]).toEqual([0, false]);
    expect(performance.now() - began, 'it has waited for the other').toBeGreaterThan(2_900);
  });

  it('that has just gone blocks for no longer than it takes to be sure', async () => {
    const operator = createOperator(['web-1']);
    holdFor(operator, 0);
    const end = await operator.reeve('deploy', aFile(operator, 'blog'));
    expect([end.status, servicesOf(operator)]).toEqual([0, ['blog/web']]);
    expect(end.stderr).not.toContain('going on');
  });

  it('that lives is waited for, named, and then left alone: writes are conditional', async () => {
    const operator = createOperator(['web-1']);
    // Ahead: a sign of life each second could be late.
    holdFor(operator, -60_000);
    const end = await operator.reeve('deploy', aFile(operator, 'blog'));
    expect([end.status, servicesOf(operator)]).toEqual([0, ['blog/web']]);
    expect(end.stderr).toContain(
      `warning: another deploy has held ${JSON.stringify(lockOf(operator))} for 10s: going on beside it\n`,
    );
    expect(existsSync(lockOf(operator)), 'it is the other’s to give back').toBe(true);
  });

  it('is not taken to look, and given back before the wait for convergence', async () => {
    const operator = createOperator(['web-1']);
    operator.store('nodes/web-1/desired.json', aDesired([aService()]));
    holdFor(operator, 0);
    const look = await operator.reeve('restart', 'blog/web', '--dry-run');
    expect([look.status, look.stderr]).toEqual([2, '']);
    utimesSync(lockOf(operator), 0, 0);
    const waiting = operator.start('restart', 'blog/web', '--yes', '--wait=60');
    await waiting.waitFor('blog/web');
    await expect
      .poll(() => operator.stored('nodes/web-1/desired.json'), { timeout: 20_000 })
      .toContain('restartAt');
    await expect.poll(() => existsSync(lockOf(operator)), { timeout: 20_000 }).toBe(false);
    waiting.child.kill('SIGTERM');
    await waiting.ended;
  });
});
