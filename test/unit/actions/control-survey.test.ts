// What doctor and status tell of a control host, by its tree alone.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { renderClock } from '../../../src/lib/actions/control/found.ts';
import { surveyControl } from '../../../src/lib/actions/control/survey.ts';
import { readMoment } from '../../../src/lib/host/moment.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { actionsContext } from '../../support/actions-context.ts';
import { anAction } from '../../support/control-host.ts';
import { makeTempDir } from '../../support/temp.ts';

it('D40 takes no redeploy for late because the clock was put forward, and leaves nothing behind', async () => {
  const dir = makeTempDir();
  const root = join(dir, 'actions');
  const ctx = actionsContext(dir);
  const action = anAction();
  const { atMs, boot } = await readMoment({ clock: systemClock, paths: ctx.paths });
  const hourAgoMs = atMs - 3_600_000;
  const clock = renderClock({ atMs: hourAgoMs, ...(boot === undefined ? {} : { boot }) });
  const dispatch = { from: 'approved', to: 'running', timestamp: Math.floor(hourAgoMs / 1000), by: 'system' };
  mkdirSync(join(root, 'running'), { recursive: true });
  const history = { transition_history: [{ ...dispatch, clock }] };
  writeFileSync(join(root, 'running', `${action.action_id}.json`), JSON.stringify({ ...action, ...history }));

  const survey = { pending: 0, approved: 0, running: 1, timeoutMs: 900_000 };
  expect(await surveyControl({ root }, ctx)).toEqual({ ...survey, late: [] });
  const runDir = join(dir, 'another-boot');
  expect(await surveyControl({ root }, { ...ctx, paths: { ...ctx.paths, runDir } })).toMatchObject({
    ...survey,
    late: [{ id: action.action_id, node: 'web-1' }],
  });
  expect(existsSync(runDir)).toBe(false);
});
