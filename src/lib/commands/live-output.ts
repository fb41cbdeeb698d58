// What a command has printed so far, for those who want to know while it runs. The file is the one that its whole output takes the
// place of.
import { renderOutput } from '../agenda/output.ts';
import type { BaseContext } from '../context.ts';
import { describeError } from '../errors.ts';
import { keepLastBytes } from '../last-bytes.ts';
import { writeOutput } from './book.ts';

export type LiveOutput = {
  add(chunk: Uint8Array): void;
  /** Nothing is written any more when this resolves. */
  stop(): Promise<void>;
};

/** As often as a control plane asks, or nearly. */
const writeMs = 1_000;

export function keepLiveOutput(
  ctx: Pick<BaseContext, 'paths' | 'clock' | 'log'>,
  key: string,
  maxBytes: number,
): LiveOutput {
  const kept = keepLastBytes(maxBytes);
  const ended = new AbortController();
  let isNew = false;
  const write = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      await ctx.clock.sleep(writeMs, ended.signal);
      if (!isNew || ended.signal.aborted) continue;
      isNew = false;
      await writeOutput(ctx, key, renderOutput(kept.read(), maxBytes)).catch((error: unknown) => {
        ctx.log.warning(describeError(error));
      });
    }
  };
  const writing = write();
  return {
    add: (chunk) => {
      kept.add(chunk);
      isNew = true;
    },
    stop: async () => {
      ended.abort();
      await writing;
    },
  };
}
