// The exchange of a token for a certificate while the server has trouble: how long it is tried, and how soon it ends.
import { existsSync } from 'node:fs';
import { describe, expect, inject, it } from 'vitest';
import { aFreshMachine, environment, requireNextRunWhole } from '../../support/exchange.ts';
import { startProcess } from '../../support/programs.ts';

describe('the exchange of a token', () => {
  it('P79: is tried again while the server has trouble, with the same token', async () => {
    const machine = await aFreshMachine();
    machine.ploy.faults.add({ route: 'bootstrap', kind: 'answer', status: 503, times: 1 });
    machine.ploy.faults.add({ route: 'bootstrap', kind: 'reset', times: 1 });
    const startedAtMs = performance.now();
    const end = await startProcess(inject('reeveBin'), ['claim', '--window', '0'], environment(machine))
      .ended;
    const ms = performance.now() - startedAtMs;
    expect([end.status, existsSync(machine.files.cert)]).toEqual([0, true]);
    const requests = machine.ploy.requestsTo('bootstrap');
    expect(requests.map(({ status }) => status)).toEqual([503, undefined, 200]);
    expect(new Set(requests.map(({ headers }) => headers['authorization'])).size).toBe(1);
    // One second and two, give or take half.
    expect(ms).toBeGreaterThan(1_500);
    expect(ms).toBeLessThan(10_000);
  });

  it('R59: told to stop while it waits for the next attempt ends at once, and the token is good still', async () => {
    const machine = await aFreshMachine();
    const heal = machine.ploy.faults.add({ route: 'bootstrap', kind: 'answer', status: 503 });
    const program = startProcess(inject('reeveBin'), ['claim', '--window', '60'], environment(machine));
    await machine.ploy.waitUntil('two attempts', () => machine.ploy.requestsTo('bootstrap').length >= 2);
    const toldAtMs = performance.now();
    program.child.kill('SIGTERM');
    expect((await program.ended).status).toBe(143);
    expect(performance.now() - toldAtMs).toBeLessThan(5_000);
    heal();
    await requireNextRunWhole(machine, 'stopped');
  });
});
