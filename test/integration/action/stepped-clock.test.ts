// The clock of the control host is set while a redeploy is running.

import { expect, it } from 'vitest';
import {
  actionId,
  aResult,
  type ControlEnd,
  type ControlHost,
  makeControlHost,
} from '../../support/control-host.ts';
import { fakeClock } from '../../support/faked-clock.ts';

/** On a clock that was set by so much; that of the files is the kernel's. */
async function settleAt(host: ControlHost, offset: string): Promise<ControlEnd> {
  const settings = fakeClock(offset);
  const under = ['env', ...Object.entries(settings).map(([name, value]) => `${name}=${value}`)];
  return await host.start(['action', 'settle', '--json'], under).end;
}

it.each(['+1h', '-1d'])('D40 D41 by %s: nothing has failed by that, nor waits for longer', async (offset) => {
  const host = makeControlHost();
  host.propose();
  await host.reeve('action', 'approve', actionId, '--yes');
  await host.reeve('action', 'dispatch');
  const { json } = await settleAt(host, offset);
  expect(json()).toMatchObject({
    outcome: 'nothing-to-do',
    actions: [{ reason: expect.stringMatching(/^node web-1 has not reported yet, after \d+m?s$/) }],
  });
  host.age(actionId, 900);
  await settleAt(host, offset);
  expect(host.statesOf(actionId)).toStrictEqual(['failed']);
  // It was set indeed.
  const { timestamp } = host.read('failed', actionId).transition_history.at(-1);
  expect(Math.abs(timestamp - Date.now() / 1000)).toBeGreaterThan(3_000);
});

it.each([true, false])('D11 by a day back, and its result counts (with its key: %s)', async (hasKey) => {
  const host = makeControlHost();
  host.propose();
  await host.reeve('action', 'approve', actionId, '--yes');
  await host.reeve('action', 'dispatch');
  const { key } = host.read('running', actionId).transition_history.at(-1);
  const { name, content } = aResult(hasKey ? { key } : {});
  host.write(`homelab/events/web-1/${name}`, content);
  await settleAt(host, '-1d');
  expect(host.statesOf(actionId)).toStrictEqual(['completed']);
});
