import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { readLastEnd } from '../../../src/lib/actions/last-end.ts';
import { makeMarker } from '../../../src/lib/actions/markers.ts';
import { actionPlaces } from '../../../src/lib/actions/places.ts';
import { refuseAction, tellEnd } from '../../../src/lib/actions/results.ts';
import { contentKey } from '../../../src/lib/deploy-runner/key.ts';
import { actionsContext } from '../../support/actions-context.ts';
import { makeTempDir } from '../../support/temp.ts';

const at = '2026-06-04T03:00:00.000Z';

it('the last end is known without a look at the markers', async () => {
  const ctx = actionsContext(makeTempDir(), () => new Date(at));
  expect(await readLastEnd(ctx)).toBeUndefined();
  const marker = {
    actionId: 'a',
    key: contentKey('a', 'x'),
    actionType: 'redeploy',
    service: 'web',
    run: 'r',
  };
  await makeMarker(ctx, { ...marker, state: { kind: 'started', startedAt: at } });
  expect(await readLastEnd(ctx)).toBeUndefined();
  const end = { outcome: 'succeeded', startedAt: at, endedAt: at, exitCode: 0 } as const;
  await tellEnd(ctx, marker, { node: 'vps', end });
  expect(await readLastEnd(ctx)).toStrictEqual({
    ...{ actionId: 'a', service: 'web', outcome: 'succeeded', endedAt: at },
  });
  rmSync(actionPlaces(ctx.paths).markers, { recursive: true });
  expect(await readLastEnd(ctx)).toMatchObject({ actionId: 'a' });
  await refuseAction(ctx, { node: 'vps', actionId: 'b', key: contentKey('b', 'x'), reason: 'no' });
  expect(await readLastEnd(ctx)).toStrictEqual({
    ...{ actionId: 'b', outcome: 'rejected', endedAt: at, reason: 'no' },
  });
});

it.each([['{'], ['{"version":9}'], ['{"version":1,"actionId":"a","endedAt":"x","outcome":"fine"}']])(
  'a last end that is %s is not known, and stops nobody from looking at the rest',
  async (text) => {
    const ctx = actionsContext(makeTempDir());
    const { lastEnd, markers } = actionPlaces(ctx.paths);
    mkdirSync(markers, { recursive: true });
    writeFileSync(lastEnd, text);
    expect(await readLastEnd(ctx)).toBeUndefined();
  },
);
