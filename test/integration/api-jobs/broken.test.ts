// An API that cannot serve: whoever waits is answered, nothing spins, and what has been mended counts for the next caller.
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { callApi, makeApiNode } from '../../support/api-node.ts';

describe('an API that cannot serve', () => {
  it('answers 503 with a configuration that is broken, says why in its log, and serves once it is mended', async () => {
    const node = makeApiNode({ tls: false });
    const good = readFileSync(node.configFile, 'utf8');
    writeFileSync(node.configFile, 'jobs: [');
    const holder = await node.hold();
    const answers = await Promise.all(Array.from({ length: 10 }, () => callApi(holder.port, undefined)));
    for (const { status, text } of answers) {
      expect([status, text]).toEqual([503, 'this node cannot serve now: its journal tells why\n']);
    }
    await expect.poll(() => holder.servicePid(), { timeout: 60_000 }).toBeUndefined();
    expect(holder.starts()).toBe(1);
    await expect.poll(() => holder.log(), { timeout: 60_000 }).toMatch(/^reeve: .*reeve\.yaml/m);
    writeFileSync(node.configFile, good);
    expect((await callApi(holder.port, undefined)).status).toBe(200);
  });

  it('hangs up without a certificate, does not spin, and serves once there is one', async () => {
    const node = makeApiNode();
    renameSync(node.files.cert, `${node.files.cert}.away`);
    const holder = await node.hold();
    const startedAt = performance.now();
    const calls = Array.from({ length: 50 }, async () => {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 1_500));
      return await callApi(holder.port, node.pki).catch((error: unknown) => error);
    });
    for (const end of await Promise.all(calls)) expect(end).toBeInstanceOf(Error);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    // It leaves two seconds after the last caller: where the machine stands still as long, another one begins.
    expect(holder.starts()).toBeLessThanOrEqual(3);
    await expect.poll(() => holder.servicePid(), { timeout: 60_000 }).toBeUndefined();
    await expect.poll(() => holder.log(), { timeout: 60_000 }).toMatch(/^reeve: cannot read .*node\.crt/m);
    renameSync(`${node.files.cert}.away`, node.files.cert);
    expect((await callApi(holder.port, node.pki)).status).toBe(200);
  });

  it('is none without the section jobs', async () => {
    const node = makeApiNode({ tls: false });
    writeFileSync(node.configFile, '{}');
    const holder = await node.hold();
    expect((await callApi(holder.port, undefined)).status).toBe(503);
    await expect.poll(() => holder.log(), { timeout: 60_000 }).toContain('section jobs is missing');
  });
});
