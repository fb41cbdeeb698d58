// A disk that is full where reeve keeps its state keeps no action from its way.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { actionId, type ControlHost, makeControlHost } from '../../support/control-host.ts';
import { fillDisk, mountSmall } from '../../support/full-disk.ts';

const ids = ['a', 'b', 'c'].map((service) => `redeploy-web-1-${service}`);

async function approveAll(host: ControlHost): Promise<void> {
  for (const id of ids) {
    host.propose({ action_id: id });
    expect((await host.reeve('action', 'approve', id, '--yes')).status).toBe(0);
  }
}

const statesOf = (host: ControlHost): string[][] => ids.map((id) => host.statesOf(id));

describe('a disk without room for the record of what is done', () => {
  it('D4 D11 keeps no action from its node, and none from its end', async () => {
    const host = makeControlHost();
    mountSmall(join(host.dir, 'state'), 'size=1m');
    await approveAll(host);
    // A page of it has room left.
    rmSync(join(host.dir, 'state/history.ndjson'));
    fillDisk(join(host.dir, 'state'));
    const dispatched = await host.reeve('action', 'dispatch', '--settle');
    expect(statesOf(host)).toStrictEqual(ids.map(() => ['running']));
    expect(dispatched.stderr).toMatch(/cannot append to .*history\.ndjson/);
    for (const id of ids) host.age(id, 900);
    await host.reeve('action', 'dispatch', '--settle');
    expect(statesOf(host)).toStrictEqual(ids.map(() => ['failed']));
  });

  it('D2 lets a person decide, and says that it is done', async () => {
    const host = makeControlHost();
    host.propose();
    mountSmall(join(host.dir, 'state'), 'size=1m');
    fillDisk(join(host.dir, 'state'));
    expect(await host.reeve('action', 'approve', actionId, '--yes')).toMatchObject({
      status: 0,
      stdout: expect.stringContaining(`${actionId} is approved by operator-ann`),
      stderr: expect.stringContaining('history.ndjson'),
    });
    expect(host.statesOf(actionId)).toStrictEqual(['approved']);
  });
});
