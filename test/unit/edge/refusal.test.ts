import { describe, expect, it } from 'vitest';
import { emptyEdge, type Refusal } from '../../../src/lib/edge/documents.ts';
import type { EdgeFacts } from '../../../src/lib/edge/facts.ts';
import { findRefusal, noteRefusal } from '../../../src/lib/edge/refusal.ts';
import { StepError, UnavailableError } from '../../../src/lib/errors.ts';

const now = new Date('2026-06-04T03:00:00.000Z');
const refused: Refusal = { inputs: 'i', textHash: 'h', at: now.toISOString(), tries: 1, message: 'no' };

function factsOf(memory: Refusal | null, laterMs = 0, textHash = 'h'): EdgeFacts {
  const live = { kind: 'read', text: '', etag: undefined, textHash } as const;
  const at = new Date(now.getTime() + laterMs);
  return { now: at, live, memory: { ...emptyEdge, refused: memory } } as unknown as EdgeFacts;
}

describe('a document that Caddy has refused', () => {
  it.each([
    [1, 60_000],
    [2, 120_000],
    [4, 480_000],
    [5, 900_000],
    [50, 900_000],
  ])('is not sent again for a while: after %i tries for %i ms', (tries, ms) => {
    const memory = { ...refused, tries };
    const until = new Date(now.getTime() + ms).toISOString();
    const error = findRefusal(factsOf(memory, ms - 1), 'i');
    expect(error?.message).toBe(
      `no; not sent again before ${until}: once it is solved, restart Caddy, which may still listen with it`,
    );
    expect(findRefusal(factsOf(memory, ms), 'i')).toBeUndefined();
  });

  it.each<[string, EdgeFacts, string]>([
    ['nothing was refused', factsOf(null), 'i'],
    ['it is another document', factsOf(refused), 'other'],
    ['Caddy has another one by now', factsOf(refused, 0, 'other'), 'i'],
    ['the clock has gone back', factsOf(refused, -1), 'i'],
    ['Caddy cannot be read', { ...factsOf(refused), live: { kind: 'unreadable', error: 'x' } }, 'i'],
  ])('is sent where %s', (_why, facts, inputs) => {
    expect(findRefusal(facts, inputs)).toBeUndefined();
  });

  it('is remembered, counted, and forgotten with the next that is taken', () => {
    const error = new StepError('no', { code: 'caddy-refused' });
    expect(noteRefusal(factsOf(null), 'i', error)).toEqual(refused);
    expect(noteRefusal(factsOf(refused, 60_000), 'i', error)).toMatchObject({ tries: 2 });
    expect(noteRefusal(factsOf(refused), 'other', error)).toMatchObject({ inputs: 'other', tries: 1 });
    expect(noteRefusal(factsOf(refused), 'i', findRefusal(factsOf(refused), 'i'))).toBe(refused);
    expect(noteRefusal(factsOf(refused), 'i', new UnavailableError('down'))).toBeNull();
    expect(noteRefusal(factsOf(refused), 'i', undefined)).toBeNull();
  });
});
