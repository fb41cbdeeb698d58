// A document that Caddy has refused is not sent again at each look: Caddy 2.6 leaves the listeners of a document that failed
// to start open, and they take a share of everybody's connections until its process ends. Pure.
import { ReeveError, StepError } from '../errors.ts';
import type { Refusal } from './documents.ts';
import type { EdgeFacts } from './facts.ts';

const firstPauseMs = 60_000;
const longestPauseMs = 15 * 60_000;

/** What the last try left, where it was of the same document, over the same one of Caddy's, and is not long ago. */
export function findRefusal(facts: EdgeFacts, inputs: string): StepError | undefined {
  const { refused } = facts.memory;
  if (refused === null || facts.live.kind !== 'read') return undefined;
  if (refused.inputs !== inputs || refused.textHash !== facts.live.textHash) return undefined;
  const at = Date.parse(refused.at);
  const again = new Date(at + Math.min(longestPauseMs, firstPauseMs * 2 ** (refused.tries - 1)));
  // A clock that was set back must not make it wait for ever.
  if (facts.now >= again || facts.now.getTime() < at) return undefined;
  return new StepError(`${refused.message}; not sent again before ${again.toISOString()}: ${remedy}`, {
    code: 'caddy-held-back',
  });
}

const remedy = 'once it is solved, restart Caddy, which may still listen with it';

/** `error` is how the push ended. */
export function noteRefusal(facts: EdgeFacts, inputs: string, error: unknown): Refusal | null {
  const { refused } = facts.memory;
  if (!(error instanceof ReeveError) || facts.live.kind !== 'read') return null;
  if (error.code === 'caddy-held-back') return refused;
  if (error.code !== 'caddy-refused') return null;
  const isSame = refused?.inputs === inputs && refused.textHash === facts.live.textHash;
  return {
    inputs,
    textHash: facts.live.textHash,
    at: facts.now.toISOString(),
    tries: isSame ? refused.tries + 1 : 1,
    message: error.message,
  };
}
