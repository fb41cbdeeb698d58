// Commands whose processes end between any two steps, and those who meet over one: what is deleted stays deleted, and what was taken
// is run.
import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readRecord, removeCommand } from '../../../src/lib/commands/book.ts';
import { deleteCommand } from '../../../src/lib/commands/delete.ts';
import { lookAtCommand } from '../../../src/lib/commands/look.ts';
import { runCommandById } from '../../../src/lib/commands/run.ts';
import { failCommand } from '../../../src/lib/commands/settle.ts';
import { sweepCommands } from '../../../src/lib/commands/sweep.ts';
import { acquireLock } from '../../../src/lib/lock/flock.ts';
import { commandLock } from '../../../src/lib/lock/names.ts';
import { contextOf } from '../../support/commands-context.ts';
import { type CommandsNode, makeCommandsNode, nodeBoot } from '../../support/commands-node.ts';

const request = { jobId: 'a', dir: '/', env: ['SECRET=hunter2'], mode: 'shell', shell: 'echo ran' };
const at = (ageMs: number): string => new Date(Date.now() - ageMs).toISOString();
const accepted = { kind: 'accepted', request };
const lost = { kind: 'running', request, startedAt: at(1_000), runner: { pid: process.pid, startTime: '1' } };
const ended = { kind: 'success', startedAt: at(1_000), endedAt: at(500) };
const states: [string, object][] = [
  ['was taken', accepted],
  ['lost its process', lost],
  ['has ended', ended],
];

function put(node: CommandsNode, state: object, more: object = {}): void {
  node.writeRecord('a', {
    jobId: 'a',
    generation: 'g-1',
    acceptedAt: at(0),
    bootId: nodeBoot,
    state,
    ...more,
  });
}

function putNote(node: CommandsNode, generation = 'g-1'): string {
  const name = `a.cancel-${generation}`;
  writeFileSync(join(node.stateDir, 'commands', name), JSON.stringify({ version: 1, generation, at: at(0) }));
  return name;
}

const again = { job_id: 'a', dir: '/', mode: 'shell', shell: 'echo again' };
const turns = <Value>(_: string, work: () => Promise<Value>): Promise<Value> => work();

describe.each(states)('a command that %s and was deleted, by a process that ended right then', (_, state) => {
  it('is none for whoever asks, and its id can be used at once', async () => {
    const node = makeCommandsNode();
    put(node, state);
    putNote(node);
    expect(await lookAtCommand(await contextOf(node), 'a')).toBeUndefined();
    const { client } = await node.serve();
    expect(await client.look('a')).toEqual({ status: 404, error: 'job not found' });
    const startedAtMs = performance.now();
    expect(await client.dispatch(again)).toBe('a');
    expect(performance.now() - startedAtMs).toBeLessThan(5_000);
    expect(await client.wait('a')).toMatchObject({ status: 'success', output: 'again\n' });
  });

  it('is removed by a sweep, however young, and by whoever would run it', async () => {
    const node = makeCommandsNode();
    const ctx = await contextOf(node);
    put(node, state);
    putNote(node);
    const options = { retentionMs: 3_600_000, turns, signal: ctx.signal, isFirst: false };
    await sweepCommands(ctx, options);
    expect(node.files()).toEqual([]);
    put(node, state);
    putNote(node);
    expect(await runCommandById(ctx, 'a', { waitMs: 0 })).toMatchObject({ outcome: 'nothing-to-do' });
    expect(node.files()).toEqual([]);
  });
});

describe('a command', () => {
  it('stays deleted, whoever settles it at the same moment', async () => {
    const node = makeCommandsNode();
    const ctx = await contextOf(node);
    for (let count = 0; count < 60; count += 1) {
      put(node, lost);
      const looks = Array.from({ length: 1 + (count % 3) }, () => lookAtCommand(ctx, 'a'));
      await Promise.all([...looks, deleteCommand(ctx, 'a')]);
      expect(await lookAtCommand(ctx, 'a')).toBeUndefined();
      expect(node.files().filter((name) => name.startsWith('a.'))).toEqual([]);
    }
  });

  it('stays deleted where its start fails at the same moment', async () => {
    const node = makeCommandsNode();
    const ctx = await contextOf(node);
    for (let count = 0; count < 40; count += 1) {
      put(node, accepted);
      await Promise.all([failCommand(ctx, 'a', 'cannot start'), deleteCommand(ctx, 'a')]);
      expect(await lookAtCommand(ctx, 'a')).toBeUndefined();
    }
  });

  it('that has ended is deleted while another holds it, and its file goes later', async () => {
    const node = makeCommandsNode();
    const ctx = await contextOf(node);
    put(node, ended);
    const lock = await acquireLock(ctx.paths.locksDir, commandLock('a'), { ...ctx, command: 'reeve test' });
    try {
      expect(await deleteCommand(ctx, 'a')).toBe(true);
      expect(await lookAtCommand(ctx, 'a')).toBeUndefined();
    } finally {
      lock.release();
    }
    await sweepCommands(ctx, { retentionMs: 3_600_000, turns, signal: ctx.signal, isFirst: false });
    expect(node.files()).toEqual([]);
  });

  it('that is removed leaves the note about the next one of its name', async () => {
    const node = makeCommandsNode();
    const ctx = await contextOf(node);
    put(node, ended);
    const first = await readRecord(ctx, 'a');
    putNote(node);
    // Whoever removes the first one has removed its record when the next is taken, and deleted.
    const next = putNote(node, 'g-2');
    await removeCommand(ctx, 'a', first);
    expect(node.files()).toEqual([next]);
    put(node, accepted, { generation: 'g-2' });
    expect(await lookAtCommand(ctx, 'a')).toBeUndefined();
  });

  it('is not deleted by a note about an earlier one, which goes once it is old', async () => {
    const node = makeCommandsNode();
    const ctx = await contextOf(node);
    put(node, ended, { generation: 'g-2' });
    const path = join(node.stateDir, 'commands', putNote(node));
    utimesSync(path, new Date(0), new Date(0));
    expect(await lookAtCommand(ctx, 'a')).toMatchObject({ status: 'success' });
    await sweepCommands(ctx, { retentionMs: 3_600_000, turns, signal: ctx.signal, isFirst: true });
    expect(node.files()).toEqual(['a.json']);
  });

  it('whose output was written before its end tells both once it is settled', async () => {
    const node = makeCommandsNode();
    put(node, lost);
    writeFileSync(join(node.stateDir, 'commands/a.output'), 'said\n');
    expect(await lookAtCommand(await contextOf(node), 'a')).toEqual({
      ...{ status: 'failed', exit_code: -1, output: 'said\n' },
      error: 'interrupted: its process was killed',
    });
    expect(readFileSync(join(node.stateDir, 'commands/a.json'), 'utf8')).not.toContain('hunter2');
  });

  it.each<[string, string]>([
    ['begun', at(0)],
    ['begun, however long ago', at(7_200_000)],
  ])('whose start was lost with the API is %s, though nobody asks for it', async (_, acceptedAt) => {
    const node = makeCommandsNode();
    const file = join(node.root, 'file');
    put(node, { kind: 'accepted', request: { ...request, shell: `touch ${file}` } }, { acceptedAt });
    const path = join(node.stateDir, 'commands/a.json');
    utimesSync(path, new Date(acceptedAt), new Date(acceptedAt));
    const { client } = await node.serve();
    await client.health();
    await expect.poll(() => existsSync(file), { timeout: 20_000 }).toBe(true);
    expect(await client.wait('a')).toMatchObject({ status: 'success' });
  });

  it('that was interrupted keeps its secrets no longer than until the next API', async () => {
    const node = makeCommandsNode();
    put(node, lost);
    const { client } = await node.serve();
    await client.health();
    const path = join(node.stateDir, 'commands/a.json');
    await expect.poll(() => readFileSync(path, 'utf8'), { timeout: 20_000 }).not.toContain('hunter2');
  });

  it('is not taken for one whose id would have the same name', async () => {
    const node = makeCommandsNode();
    const { client } = await node.serve();
    expect(await client.dispatch({ ...again, job_id: 'a/b' })).toBe('a/b');
    // Without what is staged just now.
    const [key = ''] = node.files().flatMap((name) => /^([^.]+)\.json$/.exec(name)?.[1] ?? []);
    expect(await client.dispatch({ ...again, job_id: key })).toEqual({
      ...{ status: 400, error: 'job_id stands for another job here: a/b' },
    });
    expect(await client.look(key)).toMatchObject({ status: 404 });
    expect(await client.wait('a/b')).toMatchObject({ status: 'success' });
  });
});
