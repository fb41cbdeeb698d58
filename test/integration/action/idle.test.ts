// A look that finds nothing to do says so to a person, as those of the other concerns do, and nothing to the journal, where a timer comes
// each few seconds.
import { expect, inject, it } from 'vitest';
import { makeActionsNode } from '../../support/actions-node.ts';
import { makeControlHost } from '../../support/control-host.ts';
import { startProcess } from '../../support/programs.ts';

const ofControl = () => makeControlHost().environment;
const ofNode = () => makeActionsNode().env;

it.each([
  ['action dispatch', ofControl],
  ['action dispatch --settle --window 300 --wait 60', ofControl],
  ['action settle', ofControl],
  ['deploy-action --wait 1600', ofNode],
] as const)('D5 D36 %s says that there is nothing to do, but not to the journal', async (words, place) => {
  const env = place();
  const run = (more: Record<string, string>) =>
    startProcess(inject('reeveBin'), words.split(' '), { ...env, ...more }).ended;
  expect(await run({})).toMatchObject({ status: 0, stdout: 'nothing to do\n', stderr: '' });
  expect(await run({ JOURNAL_STREAM: '8:1' })).toMatchObject({ status: 0, stdout: '', stderr: '' });
});
