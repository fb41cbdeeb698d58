// What a node tells, as the control side takes it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findResults } from '../../../src/lib/action/facts.ts';
import type { Dispatched } from '../../../src/lib/actions/control/found.ts';
import { actionPlaces } from '../../../src/lib/actions/places.ts';
import { type Refusal, refuseAction } from '../../../src/lib/actions/results.ts';
import { listResults } from '../../../src/lib/actions/spool.ts';
import { parseResultEvent } from '../../../src/lib/deploy-runner/event.ts';
import { contentKey } from '../../../src/lib/deploy-runner/key.ts';
import { actionsContext } from '../../support/actions-context.ts';
import { makeTempDir } from '../../support/temp.ts';

const arrivedAtMs = Date.parse('2026-06-04T03:00:30.000Z');

/** The reasons that the control side finds for the dispatch. */
async function tellAndFind(dispatched: Dispatched, refusal: Partial<Refusal>): Promise<unknown[]> {
  const ctx = actionsContext(makeTempDir());
  const about = { node: 'vps', actionId: 'a', key: contentKey('a', 'what has come'), reason: 'no' };
  await refuseAction(ctx, { ...about, ...refusal });
  const [name = ''] = await listResults(ctx);
  const result = parseResultEvent(readFileSync(join(actionPlaces(ctx.paths).outbox, name)));
  return findResults(dispatched, 'vps', [{ name, result, arrivedAtMs }]).map(
    ({ result: { reason } }) => reason,
  );
}

const fromMs = arrivedAtMs - 30_000;
const dispatched = { key: contentKey('a', 'an approval'), since: { atMs: fromMs }, fromMs };

it('a refusal of what could not be read ends the action that waits under its id (D45)', async () => {
  expect(await tellAndFind(dispatched, {})).toEqual(['rejected: no']);
  // What has come before cannot be about it.
  expect(await tellAndFind({ ...dispatched, fromMs: arrivedAtMs + 1 }, {})).toEqual([]);
});

it('a refusal of an action ends the approval that it is of, and no other of its id (D42)', async () => {
  const read = { actionType: 'redeploy', service: 'web' };
  expect(await tellAndFind(dispatched, { ...read, key: dispatched.key })).toEqual(['rejected: no']);
  expect(await tellAndFind(dispatched, read)).toEqual([]);
});
