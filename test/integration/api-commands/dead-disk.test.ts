// What a disk that does not answer, as one of a network whose server is gone, does to the API: to whoever asks for logs there, and to
// nobody else.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { callRaw } from '../../support/agenda/client.ts';
import { makeCommandsNode, nodeToken } from '../../support/commands-node.ts';
import { mountDead } from '../../support/dead-disk.ts';

describe('logs in a directory that does not answer', () => {
  it('are refused, and keep no other caller from an answer, nor the API from its end', async () => {
    const node = makeCommandsNode();
    const { client, port, holder } = await node.serve(4);
    const dir = join(node.root, 'dead');
    mountDead(dir);
    const headers = { 'X-Agenda-Node-Token': nodeToken };
    const ask = () => callRaw(port, { path: `/v1/logs/app/one?dir=${encodeURIComponent(dir)}`, headers });
    const answers = await Promise.all([ask(), ask(), ask()]);
    expect(answers.map(({ status, text }) => [status, text])).toEqual(
      answers.map(() => [
        500,
        JSON.stringify({ error: `cannot read ${JSON.stringify(dir)}: no answer within 5s` }),
      ]),
    );
    expect((await client.health()).version).not.toBe('');
    await expect.poll(() => holder.servicePid(), { timeout: 20_000 }).toBeUndefined();
    expect((await client.health()).version).not.toBe('');
    expect(holder.starts()).toBe(2);
  }, 150_000);
});
