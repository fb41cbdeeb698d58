import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import {
  endGroup,
  endMarked,
  isAlive,
  nameProcess,
  type ProcessName,
  readStartTime,
} from '../../../src/lib/host/processes.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { onTestFinished } from '../../support/after-test.ts';

const gone = { graceMs: 10_000, clock: systemClock };

/** A shell that leads its group, once it has said that it is there. */
async function startGroup(
  body: string,
): Promise<{ leader: ProcessName; said: string; ended: Promise<unknown> }> {
  const child = spawn('sh', ['-c', body], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(child, 'exit');
  const leader = nameProcess(child.pid ?? 0, 'boot-1');
  onTestFinished(() => {
    try {
      process.kill(-leader.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  });
  const [chunk] = (await once(child.stdout, 'data')) as [Buffer];
  return { leader, said: chunk.toString().trim(), ended };
}

describe('a process by its name', () => {
  const me = nameProcess(process.pid, 'boot-1');
  it.each<[string, ProcessName, string | undefined, boolean]>([
    ['is there', me, 'boot-1', true],
    ['is there where nobody knows which boot this is', me, undefined, true],
    ['of another start is another one', { ...me, startTime: '1' }, 'boot-1', false],
    ['of another boot is another one, whatever its number and its start', me, 'boot-2', false],
    ['that was gone before it had a name is not there', { ...me, startTime: '' }, 'boot-1', false],
    ['of no number is not there', { ...me, pid: 0 }, 'boot-1', false],
  ])('%s', (_, name, bootNow, expected) => expect(isAlive(name, bootNow)).toBe(expected));
});

describe('ending what a process leads', () => {
  it('is over when all of it is gone, also what outlives its leader', async () => {
    // The leader goes by SIGTERM; the other one takes its time.
    const body = `sh -c 'trap "sleep 0.4; exit" TERM; echo $$; while :; do sleep 0.05; done' & wait`;
    const { leader, said } = await startGroup(body);
    expect(await endGroup(leader, 'boot-1', gone)).toBe(true);
    expect([readStartTime(leader.pid), readStartTime(Number(said))]).toEqual([undefined, undefined]);
  });

  it('kills what does not end by itself', async () => {
    const { leader, said } = await startGroup(`trap '' TERM; echo $$; while :; do sleep 0.05; done`);
    expect(await endGroup(leader, 'boot-1', { ...gone, graceMs: 100 })).toBe(true);
    expect(readStartTime(Number(said))).toBeUndefined();
  });

  it.each([['boot-2'], [undefined]])('leaves what is of another boot than %s', async (bootNow) => {
    const { leader } = await startGroup('echo here; while :; do sleep 0.05; done');
    expect(await endGroup(leader, bootNow, { ...gone, graceMs: 0 })).toBe(true);
    expect(isAlive(leader, 'boot-1')).toBe(true);
  });

  it('leaves a stranger that has its number by now', async () => {
    const { leader } = await startGroup('echo here; while :; do sleep 0.05; done');
    const earlier = { ...leader, startTime: '1' };
    expect(await endGroup(earlier, 'boot-1', { ...gone, graceMs: 0 })).toBe(true);
    expect(isAlive(leader, 'boot-1')).toBe(true);
  });
});

describe('ending what has a mark', () => {
  it('finds all that has it, also without its leader and out of its group, and nothing else', async () => {
    const mark = `REEVE_TEST_MARK=${randomUUID()}`;
    const loop = 'while :; do sleep 0.05; done';
    const marked = `env ${mark} sh -c 'setsid sh -c "echo \\$\\$; ${loop}" & wait' & wait`;
    const { leader, said } = await startGroup(marked);
    const other = await startGroup(`env ${mark}0 sh -c 'echo here; ${loop}'`);
    expect(await endMarked(mark, { ...gone, graceMs: 100 })).toBe(true);
    expect(readStartTime(Number(said))).toBeUndefined();
    expect([readStartTime(other.leader.pid) !== undefined, await endMarked(mark, gone)]).toEqual([
      true,
      true,
    ]);
    expect(leader.pid).not.toBe(Number(said));
  });

  it('kills what does not end by itself', async () => {
    const mark = `REEVE_TEST_MARK=${randomUUID()}`;
    const body = `trap "" TERM; echo \\$\\$; while :; do sleep 0.05; done`;
    const { said } = await startGroup(`env ${mark} sh -c "${body.replaceAll('"', '\\"')}"`);
    expect(await endMarked(mark, { ...gone, graceMs: 100 })).toBe(true);
    expect(readStartTime(Number(said))).toBeUndefined();
  });
});
