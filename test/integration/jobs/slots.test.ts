// Slots, taken by processes that know nothing of each other.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { programPath, startProcess } from '../../support/programs.ts';
import { makeTempDir } from '../../support/temp.ts';

it('P44 P56 gives the one slot to a claim or to a job of the API, whichever process is first, and never to both', async () => {
  const root = makeTempDir();
  mkdirSync(join(root, 'run/locks'), { recursive: true });
  const start = (side: string) =>
    startProcess(process.execPath, [programPath('race-slots.ts'), side, root, '20000'], {});
  const [opener, claimer] = [start('open'), start('claim')];
  const { taken, tooMany } = JSON.parse((await claimer.ended).stdout);
  opener.child.stdin.end();
  const { opened } = JSON.parse((await opener.ended).stdout);
  console.log(`figure: slots raced for: ${taken} claims, ${opened} jobs`);
  expect(tooMany).toBe(0);
  expect([taken > 1000, opened > 50]).toEqual([true, true]);
});
