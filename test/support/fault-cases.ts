// What the faults are tried on: shared by the program that acts and the tests that look at what it left.
import { defineDocument } from '../../src/lib/state/document.ts';
import type { HistoryEvent } from '../../src/lib/state/history.ts';

/** Longer than one page and one chunk, so that a cut would show. */
export const oldBody = `${'old content\n'.repeat(2000)}`;
export const newBody = `${'new content, and more of it\n'.repeat(1500)}`;

export const textDocument = defineDocument<{ text: string }>({
  version: 1,
  parse: (raw) => {
    if (typeof raw['text'] !== 'string') throw new Error('its text is wrong');
    return { text: raw['text'] };
  },
});

export function anEvent(action: string, overrides: Partial<HistoryEvent> = {}): HistoryEvent {
  return {
    at: '2026-06-04T03:00:00.000Z',
    run: 'run',
    concern: 'reconcile',
    action,
    reason: 'because',
    outcome: 'done',
    ...overrides,
  };
}
