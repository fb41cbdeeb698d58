// Fresh connections aimed at the moment at which the API ends: what it has not taken waits for the next one.
import { readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type ApiNode, callApi, makeApiNode } from '../../support/api-node.ts';
import { createRandom } from '../../support/random.ts';
import type { SocketHolder } from '../../support/socket-holder.ts';
import { tellFigure } from '../../support/system.ts';
import { median } from '../../support/timing.ts';

const wanted = Number(process.env['REEVE_CONNECTIONS'] ?? 1_200);
const aRound = 20;
const idleMs = 40;

describe('the API on a socket that systemd holds', () => {
  it(`loses none of ${wanted} fresh connections over its idle exits (P24, P25, P26)`, {
    timeout: 900_000,
  }, async () => {
    const node = makeApiNode();
    const holder = await node.hold(idleMs / 1000);
    const random = createRandom(7);
    const lost: string[] = [];
    let [answered, worstMs] = [0, 0];
    const began = performance.now();
    const call = fastCaller(node, holder.port);
    while (answered + lost.length < wanted) {
      // Twenty within some milliseconds, around the moment at which nobody has been connected for long enough.
      const roundMs = idleMs - 6 + random.below(16);
      const calls = Array.from({ length: aRound }, async () => {
        await new Promise((resolve) => setTimeout(resolve, roundMs + random.below(14)));
        const startedAt = performance.now();
        await call().then(
          () => {
            answered += 1;
          },
          (error: unknown) => {
            lost.push(String(error));
          },
        );
        worstMs = Math.max(worstMs, performance.now() - startedAt);
      });
      await Promise.all(calls);
    }
    expect(lost).toEqual([]);
    expect(holder.starts()).toBeGreaterThan(wanted / aRound / 5);
    tellFigure(
      `API for jobs: ${answered} connections over ${holder.starts()} starts, none lost, slowest ${Math.round(worstMs)} ms, ${Math.round((performance.now() - began) / 1000)} s in all`,
    );
  });

  it('is started for the first caller and answers in less than a second', async () => {
    const node = makeApiNode();
    const holder = await node.hold();
    const times: number[] = [];
    for (let count = 0; count < 5; count += 1) {
      await expect.poll(() => holder.servicePid(), { timeout: 30_000 }).toBeUndefined();
      expect(holder.starts()).toBe(count);
      const startedAt = performance.now();
      expect((await callApi(holder.port, node.pki)).status).toBe(200);
      times.push(performance.now() - startedAt);
    }
    expect(median(times)).toBeLessThan(1_000);
    expect(holder.starts()).toBe(5);
  });

  it('ends at once when it is stopped, with the answers under way, and the next caller has the next one', async () => {
    const node = makeApiNode();
    const holder = await node.hold(60);
    const times = [await measureStop(node, holder)];
    // Of a machine that stands still, which it does not each time; what waits for its callers has five seconds each time.
    while (Math.min(...times) >= 3_000 && times.length < 3) times.push(await measureStop(node, holder));
    expect(Math.min(...times)).toBeLessThan(3_000);
    expect((await callApi(holder.port, node.pki)).status).toBe(200);
    expect(holder.starts()).toBe(times.length + 1);
  });
});

/** With a kept connection, and a caller that is refused and has a second to read that. */
async function measureStop(node: ApiNode, holder: SocketHolder): Promise<number> {
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  expect((await callApi(holder.port, node.pki, { agent })).status).toBe(200);
  const body = Buffer.alloc(11 << 20, 0x20);
  expect((await callApi(holder.port, node.pki, { method: 'POST', path: '/v1/run/start', body })).status).toBe(
    413,
  );
  const pid = holder.servicePid() ?? 0;
  const startedAt = performance.now();
  process.kill(pid, 'SIGTERM');
  await expect.poll(() => holder.servicePid(), { timeout: 30_000 }).toBeUndefined();
  return performance.now() - startedAt;
}

/** A handshake, a request and its answer over a connection of its own, without the cost of a whole HTTP client. */
function fastCaller(node: ApiNode, port: number): () => Promise<void> {
  const options = {
    port,
    host: '127.0.0.1',
    ca: readFileSync(node.pki.ca.cert),
    cert: readFileSync(node.pki.node.cert),
    key: readFileSync(node.pki.node.key),
    minVersion: 'TLSv1.3' as const,
  };
  return () =>
    new Promise((resolve, reject) => {
      const socket = connectTls(options, () => {
        socket.write('GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n');
      });
      let text = '';
      socket.setTimeout(30_000, () => socket.destroy(new Error('no answer within 30 s')));
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      socket.once('error', reject);
      socket.once('close', () => {
        if (text.endsWith('{"status":"ok"}')) resolve();
        else reject(new Error(`answered ${JSON.stringify(text)}`));
      });
    });
}
