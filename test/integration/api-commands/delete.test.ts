// What a DELETE ends, and what is left of it.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeCommandsNode } from '../../support/commands-node.ts';

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

  it('removes one that was taken and not begun', async () => {
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

async function until(what: () => boolean): Promise<void> {
  for (let left = 1_000; !what(); left -= 1) {
    if (left === 0) throw new Error('it has not come');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
