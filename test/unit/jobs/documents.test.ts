// A record of the wrong shape is damaged, and never something else than what was written.
import { describe, expect, it, test } from 'vitest';
import { completionDocument, progressDocument } from '../../../src/lib/jobs/documents.ts';

const logs = { nextChunk: 2, sentBytes: 10, closed: false };
const progress = {
  phase: 'ended',
  since: '2026-06-04T03:00:00.000Z',
  containerId: 'a1b2c3',
  cancelled: { at: '2026-06-04T03:00:00.000Z', reason: 'enough', by: 'operator' },
  logs: { ...logs, pending: { chunkNo: 1, fromBytes: 5, toBytes: 10 } },
  end: { exitCode: 1, oomKilled: false, error: '' },
  steps: [{ name: 'wait', at: '2026-06-04T03:00:00.000Z', ms: 5 }],
};
const completion = {
  body: { status: 'Success', exit_code: 0, stats: { duration_ms: 5 } },
  decidedAt: '2026-06-04T03:00:00.000Z',
  attempts: 1,
  settled: { at: '2026-06-04T03:00:00.000Z', how: 'acknowledged' },
};

test('whole records are what was written', () => {
  expect(progressDocument.parse({ version: 1, ...progress })).toEqual(progress);
  expect(completionDocument.parse({ version: 1, ...completion })).toEqual(completion);
  const { containerId: _, ...begun } = progress;
  expect(progressDocument.parse({ version: 1, ...begun, phase: 'starting' })).toMatchObject({ logs });
});

describe('R32: is damaged', () => {
  it.each([
    ['phase', 'dancing'],
    ['phase', 'toString'],
    ['containerId', undefined],
    ['containerId', 5],
    ['containerId', '../../images/json?'],
    ['cancelled', 'yes'],
    ['cancelled', {}],
    ['logs', { ...logs, pending: null }],
    ['logs', { ...logs, pending: 'x' }],
    ['logs', { ...logs, sentBytes: -1 }],
    ['end', null],
    ['end', 'x'],
    ['end', { exitCode: '1', oomKilled: false, error: '' }],
    ['steps', [null]],
    ['steps', {}],
  ])('progress with %s %j', (name, value) => {
    expect(() => progressDocument.parse({ version: 1, ...progress, [name]: value })).toThrow(name);
  });

  it.each([
    ['body', { status: 'Dancing' }],
    ['body', { status: 'Success', stats: null }],
    ['attempts', -1],
    ['settled', null],
    ['settled', 5],
    ['settled', { at: '2026-06-04T03:00:00.000Z', how: 'somehow' }],
  ])('completion with %s %j', (name, value) => {
    expect(() => completionDocument.parse({ version: 1, ...completion, [name]: value })).toThrow(name);
  });
});
