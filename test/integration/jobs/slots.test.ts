// Slots, taken by processes that know nothing of each other.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type ProgramEnd, programPath, startProcess } from '../../support/programs.ts';
import { makeTempDir } from '../../support/temp.ts';

const readEnd = ({ stdout }: ProgramEnd): Record<'taken' | 'tooMany' | 'opened', number> =>
  JSON.parse(stdout.trim().split('\n').at(-1) ?? '');

it('P44 P56 gives the one slot to a claim or to a job of the API, whichever process is first, and never to both', async () => {
  const root = makeTempDir();
  mkdirSync(join(root, 'run/locks'), { recursive: true });
  const start = (side: string) =>
    startProcess(process.execPath, [programPath('race-slots.ts'), side, root, '20000'], {});
  const [opener, claimer] = [start('open'), start('claim')];
  for (const one of [opener, claimer]) await one.waitFor('ready');
  for (const one of [opener, claimer]) one.tell('go');
  const { taken, tooMany } = readEnd(await claimer.ended);
  opener.child.stdin.end();
  const { opened } = readEnd(await opener.ended);
  console.log(`figure: slots raced for: ${taken} claims, ${opened} jobs`);
  expect(tooMany).toBe(0);
  expect([taken > 1000, opened > 50]).toEqual([true, true]);
});
