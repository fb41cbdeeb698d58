// How many commands there is room for, by what is left of earlier ones: only what is under way takes any.
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createRoom } from '../../../src/lib/api-commands/room.ts';
import { contextOf } from '../../support/commands-context.ts';
import { type CommandsNode, makeCommandsNode, nodeBoot } from '../../support/commands-node.ts';

const now = new Date().toISOString();
const request = { jobId: 'a', dir: '/', env: [], mode: 'shell', shell: 'true' };
const ended = { kind: 'success', startedAt: now, endedAt: now };
const lost = { kind: 'running', request, startedAt: now, runner: { pid: process.pid, startTime: '1' } };
const alive = { kind: 'accepted', request };

const recordOf = (jobId: string, state: object) => ({
  ...{ jobId, generation: 'g-1', acceptedAt: now, bootId: nodeBoot, state },
});

/** The files of locks that processes which were killed have left, and what is known of their commands. */
function leave(node: CommandsNode, state: object | undefined): void {
  mkdirSync(join(node.root, 'run/locks'), { recursive: true });
  for (let index = 0; index < 40; index += 1) {
    const jobId = `left-${index}`;
    writeFileSync(join(node.root, `run/locks/command@${jobId}.lock`), '');
    if (state !== undefined) node.writeRecord(jobId, recordOf(jobId, state));
  }
}

describe('the room for commands', () => {
  it.each<[string, object | undefined]>([
    ['that are no more', undefined],
    ['that have ended', ended],
    ['whose processes were killed', lost],
  ])('is not taken by what is left of those %s', async (_, state) => {
    const node = makeCommandsNode();
    leave(node, state);
    const admit = createRoom(await contextOf(node));
    for (let index = 0; index < 32; index += 1) {
      const recorded = await admit(`new-${index}`);
      node.writeRecord(`new-${index}`, recordOf(`new-${index}`, alive));
      recorded();
    }
    await expect(admit('another')).rejects.toThrow('too many commands at once');
  });

  it('is taken by those that are about to run, whoever took them', async () => {
    const node = makeCommandsNode();
    leave(node, alive);
    await expect(createRoom(await contextOf(node))('new')).rejects.toThrow('too many commands at once');
  });

  it('is not taken by those that could not be counted', async () => {
    const node = makeCommandsNode();
    const ctx = await contextOf(node);
    const admit = createRoom(ctx);
    writeFileSync(ctx.paths.locksDir, '');
    for (let index = 0; index < 40; index += 1)
      await expect(admit(`new-${index}`)).rejects.toThrow(/ENOTDIR/);
    renameSync(ctx.paths.locksDir, join(node.root, 'no-directory'));
    expect(await admit('new')).toBeTypeOf('function');
  });
});
