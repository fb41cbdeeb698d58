// The exchange of a token for a certificate, killed at each step on disk and on the wire: what is there is whole and for nobody
// else's eyes, the token is exchanged once, and the next run has all of it.
import { mkdirSync, readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import {
  aFreshMachine,
  environment,
  isLost,
  mode,
  requireNextRunWhole,
  requireWholeFiles,
} from '../../support/exchange.ts';
import { attemptAtCalls, fileCalls, runUnderFault } from '../../support/faults.ts';
import { writeSecret } from '../../support/jobs-machine.ts';
import { startProcess } from '../../support/programs.ts';
import { sentenceOfProgram } from '../../support/sentence.ts';

describe('P79: the exchange of a token, killed', () => {
  it.each([
    ['rename', 6],
    ['sync', 10],
    ['unlink', 2],
  ] as const)(
    'at any %s: the next run has all of it, and no token is exchanged twice',
    {
      timeout: 590_000,
    },
    async (call, least) => {
      let losses = 0;
      const { hits, calls } = await attemptAtCalls(async (n) => {
        const machine = await aFreshMachine();
        const fault = { calls: fileCalls[call], effect: 'signal=KILL' };
        const run = await runUnderFault([inject('reeveBin'), 'heartbeat'], environment(machine), fault, n);
        const name = `${call} ${n}`;
        requireWholeFiles(machine, name);
        const lost = isLost(machine);
        if (lost) {
          losses += 1;
          machine.ploy.state.nodes.clear();
          writeSecret(machine.files.bootstrapToken, machine.ploy.issueBootstrapToken());
        }
        await requireNextRunWhole(machine, name);
        const exchanged = machine.ploy.requestsTo('bootstrap').map(({ status }) => status);
        expect([name, exchanged]).toEqual([name, lost ? [200, 200] : [200]]);
        await machine.ploy.stop();
        return run;
      });
      console.log(
        `figure: killed at ${hits} of ${calls} calls of ${call}, ${losses} with an answer that was on no disk yet`,
      );
      expect(calls).toBeGreaterThanOrEqual(least);
      expect(hits).toBeGreaterThan(0);
      // Only while the answer itself is put on disk.
      expect(losses).toBeLessThanOrEqual(4);
    },
  );

  it('before the server has done it: the next run exchanges the same token', async () => {
    const machine = await aFreshMachine();
    const heal = machine.ploy.faults.add({ route: 'bootstrap', kind: 'silence' });
    const program = startProcess(inject('reeveBin'), ['heartbeat'], environment(machine));
    await expect.poll(() => machine.ploy.requestsTo('bootstrap').length, { timeout: 30_000 }).toBe(1);
    program.child.kill('SIGKILL');
    await program.ended;
    heal();
    expect(readdirSync(dirname(machine.files.token))).toEqual(['bootstrap-token']);
    await requireNextRunWhole(machine, 'silence');
    expect(machine.ploy.requestsTo('bootstrap').map(({ status }) => status)).toEqual([undefined, 200]);
  });

  it('R35: after the server has done it and before its answer is here: is told what to do, and mended by that', {
    timeout: 120_000,
  }, async () => {
    const machine = await aFreshMachine();
    const heal = machine.ploy.faults.add({ route: 'bootstrap', kind: 'silence', committed: true });
    const program = startProcess(inject('reeveBin'), ['heartbeat'], environment(machine));
    await expect.poll(() => machine.ploy.requestsTo('bootstrap').length, { timeout: 30_000 }).toBe(1);
    await expect.poll(() => machine.ploy.state.nodes.size, { timeout: 30_000 }).toBe(1);
    program.child.kill('SIGKILL');
    await program.ended;
    heal();
    const next = await startProcess(inject('reeveBin'), ['heartbeat'], environment(machine)).ended;
    expect(next.status).toBe(69);
    expect(sentenceOfProgram(next)).toMatch(/the bootstrap token is refused \(401.*\): issue a new token/);
    machine.ploy.state.nodes.clear();
    writeSecret(machine.files.bootstrapToken, machine.ploy.issueBootstrapToken());
    machine.write('state/backoff/jobs.json', '');
    await requireNextRunWhole(machine, 'lost answer');
  });

  it('a directory of certificates that is there keeps its mode, and one that is made is 0750', async () => {
    const machine = await aFreshMachine();
    mkdirSync(dirname(machine.files.cert), { mode: 0o700 });
    await requireNextRunWhole(machine, 'there');
    expect(mode(dirname(machine.files.cert))).toBe('700');
  });
});
