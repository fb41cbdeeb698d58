// How long calls may take, and the end of one that takes longer or is interrupted: an abort signal with a reason to tell.

/** `total` bounds the whole exchange, `idle` each silence in it. */
export type Limit = { kind: 'total' | 'idle'; ms: number };

export type Deadlines = {
  /** Lists and inspections: 300 containers take well under a second; a machine under load gets time. */
  readMs: number;
  /** Create, start, remove: the engine may be mounting, or deleting large layers. */
  changeMs: number;
  /** Beyond a stop's own grace, for the kill and the clean-up after it. */
  stopMarginMs: number;
  /** Silence in a pull or in logs: a large layer is checked and unpacked without a word. */
  idleMs: number;
  /** A wait is asked again after this, so that an engine that hangs is noticed. */
  waitSliceMs: number;
};

export const defaultDeadlines: Deadlines = {
  readMs: 30_000,
  changeMs: 120_000,
  stopMarginMs: 30_000,
  idleMs: 300_000,
  waitSliceMs: 60_000,
};

export function total(ms: number): Limit {
  return { kind: 'total', ms };
}

export function idle(ms: number): Limit {
  return { kind: 'idle', ms };
}

export class DeadlineError extends Error {
  readonly code = 'DEADLINE';
}

export class InterruptedError extends Error {
  readonly code = 'INTERRUPTED';
}

export type Deadline = {
  readonly signal: AbortSignal;
  /** Something came: an idle deadline starts again. */
  touch(): void;
  /** Why the signal has aborted, undefined while it has not. */
  reason(): Error | undefined;
  end(): void;
};

export function startDeadline(limit: Limit, outer: AbortSignal | undefined): Deadline {
  const controller = new AbortController();
  let reason: Error | undefined;
  const abort = (error: Error): void => {
    reason ??= error;
    controller.abort(error);
  };
  const interrupt = (): void => abort(new InterruptedError('interrupted'));
  const timer = setTimeout(() => abort(new DeadlineError(`no answer within ${limit.ms} ms`)), limit.ms);
  if (outer?.aborted === true) interrupt();
  outer?.addEventListener('abort', interrupt, { once: true });
  return {
    signal: controller.signal,
    touch: () => {
      if (limit.kind === 'idle') timer.refresh();
    },
    reason: () => reason,
    end: () => {
      clearTimeout(timer);
      outer?.removeEventListener('abort', interrupt);
    },
  };
}
