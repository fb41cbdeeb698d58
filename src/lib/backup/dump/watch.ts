// A limit for the silence of a stream: a dump that hangs becomes a failure.
import { StepError } from '../../errors.ts';
import { formatDuration } from '../../time.ts';

/** Aborts `end` where nothing comes for so long. Whatever it was aborted with is what the reader is thrown. */
export async function* withIdleLimit(
  chunks: AsyncIterable<Uint8Array>,
  { idleMs, end }: { idleMs: number; end: AbortController },
): AsyncGenerator<Uint8Array> {
  const giveUp = (): void =>
    end.abort(new StepError(`nothing came for ${formatDuration(idleMs)}`, { code: 'idle' }));
  let timer = setTimeout(giveUp, idleMs);
  try {
    for await (const chunk of chunks) {
      clearTimeout(timer);
      // What the reader does with it is no silence of the source.
      yield chunk;
      timer = setTimeout(giveUp, idleMs);
    }
  } catch (error) {
    throw end.signal.aborted ? end.signal.reason : error;
  } finally {
    clearTimeout(timer);
  }
}
