// What is read of the control side while others move it.
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { readEverywhere } from '../../../src/lib/actions/control/tree.ts';
import { actionStates } from '../../../src/lib/deploy-runner/layout.ts';
import { actionId, anAction } from '../../support/control-host.ts';
import { makeTempDir } from '../../support/temp.ts';

it('D3 R37 an action that is moved while it is looked for is found, and in one place', async () => {
  const root = makeTempDir();
  for (const state of actionStates) mkdirSync(join(root, state));
  const at = (state: string): string => join(root, state, `${actionId}.json`);
  writeFileSync(at('pending'), JSON.stringify(anAction()));
  for (let round = 0; round < 40; round += 1) {
    for (const [from, to] of [
      ['pending', 'approved'],
      ['approved', 'running'],
      ['running', 'pending'],
    ] as const) {
      const reading = readEverywhere(root, actionId);
      for (let turn = 0; turn < round; turn += 1) await nextTurn();
      renameSync(at(from), at(to));
      const states = (await reading).map(({ state }) => state);
      expect([[from], [to]]).toContainEqual(states);
    }
  }
});
