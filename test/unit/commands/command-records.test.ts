import { describe, expect, it } from 'vitest';
import { recordDocument } from '../../../src/lib/commands/documents.ts';
import { toEndedState } from '../../../src/lib/commands/end.ts';
import type { CommandRecord } from '../../../src/lib/commands/records.ts';
import { findLoss } from '../../../src/lib/commands/settle.ts';
import { readStartTime } from '../../../src/lib/host/processes.ts';

const request = { jobId: 'j', dir: '/', env: ['A=1'], mode: 'shell', shell: 'true' } as const;
const at = '2026-06-04T03:00:00.000Z';
const me = { pid: process.pid, startTime: readStartTime(process.pid) ?? '' };
const aRecord = (state: CommandRecord['state']): CommandRecord => ({
  ...{ jobId: 'j', generation: 'g', acceptedAt: at, bootId: 'boot-1', state },
});
const running = { kind: 'running', request, startedAt: at, runner: me } as const;

describe('the record of a command', () => {
  const states: CommandRecord['state'][] = [
    { kind: 'accepted', request },
    { kind: 'accepted', request: { jobId: 'j', dir: '', env: [], mode: 'cmd', name: 'make', args: ['-j'] } },
    running,
    { ...running, group: { pid: 7, startTime: '8' } },
    { kind: 'success', startedAt: at, endedAt: at },
    { kind: 'failed', endedAt: at, exitCode: -1, error: 'no' },
  ];

  it.each(states.map((state) => [state.kind, state] as const))(
    'is read as it was written: %s',
    (_, state) => {
      const record = aRecord(state);
      expect(recordDocument.parse({ version: 1, ...record })).toEqual(record);
    },
  );

  it.each<[string, object]>([
    ['no state', {}],
    ['a generation that names a file elsewhere', { generation: '../g' }],
    ['an unknown state', { state: { kind: 'waiting' } }],
    ['a state from the prototype', { state: { kind: 'constructor' } }],
    ['a state without its request', { state: { kind: 'accepted' } }],
    ['a request of another mode', { state: { kind: 'accepted', request: { ...request, mode: 'ssh' } } }],
    ['a process that is none', { state: { ...running, runner: { pid: 'x', startTime: '1' } } }],
    ['an end without its code', { state: { kind: 'failed', endedAt: at, error: 'no' } }],
  ])('is damaged with %s', (_, more) => {
    const { state: __, ...record } = aRecord(running);
    expect(() => recordDocument.parse({ version: 1, ...record, ...more })).toThrow(TypeError);
  });
});

describe('findLoss', () => {
  it.each<[string, CommandRecord['state'], string | undefined, string | undefined]>([
    ['is about to run', { kind: 'accepted', request }, 'boot-1', undefined],
    ['runs', running, 'boot-1', undefined],
    ['has ended', { kind: 'success', startedAt: at, endedAt: at }, 'boot-2', undefined],
    ['was about to run before a reboot', { kind: 'accepted', request }, 'boot-2', 'interrupted by a reboot'],
    [
      'ran before a reboot',
      { ...running, runner: { ...me, startTime: '1' } },
      'boot-2',
      'interrupted by a reboot',
    ],
    [
      'ran before the first one asked what boot this is',
      { ...running, runner: { ...me, startTime: '1' } },
      undefined,
      'interrupted by a reboot',
    ],
    ['runs, whoever has lost the mark of this boot', running, undefined, undefined],
    [
      'ran before a reboot, after which another process has its number and its start',
      running,
      'boot-2',
      'interrupted by a reboot',
    ],
    [
      'lost its process',
      { ...running, runner: { pid: 4_194_303, startTime: '1' } },
      'boot-1',
      'interrupted: its process was killed',
    ],
    [
      'lost its process to another',
      { ...running, runner: { ...me, startTime: '1' } },
      'boot-1',
      'interrupted: its process was killed',
    ],
  ])('of one that %s', (_, state, bootNow, loss) => {
    expect(findLoss(aRecord(state), bootNow)).toBe(loss);
  });
});

describe('toEndedState', () => {
  const now = new Date('2026-06-04T03:00:05.000Z');
  const times = { startedAt: at, endedAt: '2026-06-04T03:00:05.000Z' };
  const output = { bytes: new Uint8Array(), isCut: false };

  it.each([
    [
      { kind: 'exited', code: 0 },
      { kind: 'success', ...times },
    ],
    [
      { kind: 'exited', code: 3 },
      { kind: 'failed', ...times, exitCode: 3, error: 'exit status 3' },
    ],
    [
      { kind: 'signalled', signal: 'SIGSEGV' },
      { kind: 'failed', ...times, exitCode: -1, error: 'ended by SIGSEGV' },
    ],
    [{ kind: 'deadline' }, { kind: 'failed', ...times, exitCode: -1, error: 'context deadline exceeded' }],
    [{ kind: 'cancelled' }, { kind: 'failed', ...times, exitCode: -1, error: 'the reason' }],
    [
      { kind: 'not-started', message: 'why' },
      { kind: 'failed', ...times, exitCode: -1, error: 'why' },
    ],
  ] as const)('of %j (A50, A55)', (end, state) => {
    expect(toEndedState({ ...end, output }, { startedAt: at, now, stopReason: 'the reason' })).toEqual(state);
  });
});
