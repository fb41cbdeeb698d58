// What a DELETE ends, and what is left of it.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { acquireLock } from '../../../src/lib/lock/flock.ts';
import { commandLock } from '../../../src/lib/lock/names.ts';
import { callRaw } from '../../support/agenda/client.ts';
import { until } from '../../support/balanced.ts';
import { contextOf } from '../../support/commands-context.ts';
import { makeCommandsNode, nodeBoot, nodeToken } from '../../support/commands-node.ts';
import { fillDisk, mountSmall } from '../../support/full-disk.ts';
import { tellFigure } from '../../support/system.ts';

const shell = (id: string, text: string) => ({ job_id: id, dir: '/', mode: 'shell', shell: text });

describe('DELETE /v1/jobs/ID', () => {
  it('answers 204 for an id that nobody has used (A47)', async () => {
    const { client } = await makeCommandsNode().serve();
    expect(await client.delete('no-such-job')).toBeUndefined();
  });

  it('removes one that has ended, and its id may be used again (A46)', async () => {
    const node = makeCommandsNode();
    const { client } = await node.serve();
    await client.dispatch(shell('a', 'echo 1'));
    await client.wait('a');
    expect(await client.delete('a')).toBeUndefined();
    expect(await client.look('a')).toEqual({ status: 404, error: 'job not found' });
    expect(node.files()).toEqual([]);
    await client.dispatch(shell('a', 'echo 2'));
    expect(await client.wait('a')).toMatchObject({ output: '2\n' });
  });

  it('ends one that runs with all it has forked, and it is gone at once (A45, A46, A49)', async () => {
    const node = makeCommandsNode();
    const { client } = await node.serve();
    const alive = join(node.root, 'alive');
    const script = `trap 'echo settled > ${alive}.end; exit' TERM; (while :; do date > ${alive}; sleep 0.02; done) & wait`;
    await client.dispatch(shell('a', script));
    await until(() => existsSync(alive));
    expect(await client.delete('a')).toBeUndefined();
    expect(await client.look('a')).toEqual({ status: 404, error: 'job not found' });
    await until(() => node.files().length === 0);
    expect(readFileSync(`${alive}.end`, 'utf8')).toBe('settled\n');
    const last = statSync(alive).mtimeMs;
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(statSync(alive).mtimeMs).toBe(last);
  });

  it('lets an id be used again while the one before still ends, and mixes nothing (A46, A48)', async () => {
    const node = makeCommandsNode();
    const { client } = await node.serve();
    const begun = join(node.root, 'begun');
    await client.dispatch(
      shell('a', `trap 'sleep 1; echo first >> ${begun}; exit' TERM; touch ${begun}; sleep 30 & wait`),
    );
    await until(() => existsSync(begun));
    await client.delete('a');
    expect(await client.dispatch(shell('a', `cat ${begun}; echo second`))).toBe('a');
    expect(await client.wait('a')).toEqual({ status: 'success', exit_code: 0, output: 'first\nsecond\n' });
  });

  it('keeps an id from the next one while the one before does not end: 503, and taken once it has (A48)', async () => {
    const node = makeCommandsNode();
    const { client, port } = await node.serve(60);
    await client.dispatch(shell('a', 'true'));
    await client.wait('a');
    const ctx = await contextOf(node);
    const request = { ...ctx, command: 'reeve test', waitMs: 10_000 };
    const lock = await acquireLock(ctx.paths.locksDir, commandLock('a'), request);
    try {
      expect(await client.delete('a')).toBeUndefined();
      const startedAtMs = performance.now();
      const answer = await callRaw(port, {
        ...{ method: 'POST', path: '/v1/jobs', body: JSON.stringify(shell('a', 'echo next')) },
        headers: { 'X-Agenda-Node-Token': nodeToken },
      });
      expect([answer.status, answer.headers['retry-after'], answer.text]).toEqual([
        ...[503, '5', '{"error":"the job that had the id a has not ended yet"}'],
      ]);
      // The control plane gives up after 30.
      expect(performance.now() - startedAtMs).toBeLessThan(30_000);
    } finally {
      lock.release();
    }
    expect(await client.dispatch(shell('a', 'echo next'))).toBe('a');
    expect(await client.wait('a')).toMatchObject({ output: 'next\n' });
  });

  it('keeps nobody waiting for those of a command whose turn is taken (A46)', async () => {
    const node = makeCommandsNode();
    const { client, port } = await node.serve(60);
    await client.dispatch(shell('a', 'true'));
    await client.wait('a');
    const ctx = await contextOf(node);
    const lock = await acquireLock(ctx.paths.locksDir, commandLock('a'), { ...ctx, command: 'reeve test' });
    const headers = { 'X-Agenda-Node-Token': nodeToken };
    const left = new AbortController();
    const call = (method: string, path: string, body?: string) =>
      callRaw(port, { method, path, headers, signal: left.signal, ...(body === undefined ? {} : { body }) });
    try {
      await client.delete('a');
      // Waits for the end of the one before, and so do these for their turn.
      const waiting = [call('POST', '/v1/jobs', JSON.stringify(shell('a', 'echo next')))];
      await new Promise((resolve) => setTimeout(resolve, 200));
      for (let count = 0; count < 20; count += 1) waiting.push(call('DELETE', '/v1/jobs/a'));
      await new Promise((resolve) => setTimeout(resolve, 200));
      const first = await Promise.race([client.delete('b').then(() => 'b'), ...waiting]);
      left.abort();
      await Promise.allSettled(waiting);
      expect(first).toBe('b');
    } finally {
      lock.release();
    }
  });

  it('of hundreds at once starts few programs at a time (A46)', async () => {
    const node = makeCommandsNode();
    const now = new Date().toISOString();
    const state = { kind: 'success', startedAt: now, endedAt: now };
    const ids = Array.from({ length: 300 }, (_, index) => `job-${index}`);
    for (const jobId of ids) {
      node.writeRecord(jobId, { jobId, generation: 'g-1', acceptedAt: now, bootId: nodeBoot, state });
    }
    const { client, holder } = await node.serve(60);
    await client.health();
    const children = `/proc/${holder.servicePid()}/task/${holder.servicePid()}/children`;
    let most = 0;
    const looking = setInterval(() => {
      most = Math.max(most, readFileSync(children, 'utf8').split(' ').length - 1);
    }, 2);
    const startedAtMs = performance.now();
    const answers = await Promise.all(ids.map((id) => client.delete(id)));
    clearInterval(looking);
    const took = `${((performance.now() - startedAtMs) / 1000).toFixed(1)} s`;
    tellFigure(`300 DELETEs at once: ${took}, ${most} programs at a time at most`);
    expect(new Set(answers)).toEqual(new Set([undefined]));
    expect(node.files()).toEqual([]);
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(16);
  });

  it('ends one that has filled the disk, and says that it could not be removed (A45)', async () => {
    const node = makeCommandsNode();
    mountSmall(node.stateDir, 'size=512k');
    const { client, port } = await node.serve(60);
    const begun = join(node.root, 'begun');
    const dying = join(node.root, 'dying');
    await client.dispatch(shell('a', `trap 'touch ${dying}; exit' TERM; touch ${begun}; sleep 300 & wait`));
    // Nothing more is written then until its end.
    await until(() => existsSync(begun) && 'group' in (node.record('a')['state'] as object));
    const { runner } = node.record('a')['state'] as { runner: { pid: number } };
    const makeRoom = fillDisk(node.stateDir);
    const headers = { 'X-Agenda-Node-Token': nodeToken };
    const answer = await callRaw(port, { method: 'DELETE', path: '/v1/jobs/a', headers });
    expect([answer.status, answer.text]).toEqual([500, expect.stringMatching(/ENOSPC/)]);
    await until(() => existsSync(dying) && !existsSync(`/proc/${runner.pid}/exe`));
    makeRoom();
    expect(await client.delete('a')).toBeUndefined();
    expect(await client.look('a')).toMatchObject({ status: 404 });
    await until(() => node.files().length === 0);
  });

  it('never begins one that was taken and not begun (A46)', async () => {
    const node = makeCommandsNode();
    const { client } = await node.serve();
    const ctx = await contextOf(node);
    // Whoever is to run it waits for this.
    const lock = await acquireLock(ctx.paths.locksDir, commandLock('a'), { ...ctx, command: 'reeve test' });
    const file = join(node.root, 'file');
    try {
      await client.dispatch(shell('a', `touch ${file}`));
      expect(node.record('a')['state']).toMatchObject({ kind: 'accepted' });
      expect(await client.delete('a')).toBeUndefined();
      expect(await client.look('a')).toMatchObject({ status: 404 });
    } finally {
      lock.release();
    }
    await until(() => node.files().length === 0 && !existsSync(lock.path));
    expect(existsSync(file)).toBe(false);
  });

  it('removes one that is deleted while it is taken', async () => {
    const node = makeCommandsNode();
    const { client } = await node.serve();
    const file = join(node.root, 'file');
    await Promise.all([
      client.dispatch(shell('a', `sleep 1; touch ${file}`)),
      client.delete('a'),
      client.delete('a'),
    ]);
    await client.delete('a');
    await until(() => node.files().length === 0);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(existsSync(file)).toBe(false);
  });
});
