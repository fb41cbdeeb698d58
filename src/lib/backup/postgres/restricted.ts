// What psql reads may have commands that are psql's own, and `\!`, `\copy` or `\g |` run programs as whoever psql is. A dump has
// lain where others may write, so that psql is told to take none of them: `\restrict KEY`, until it hears the key again.
import { randomBytes } from 'node:crypto';
import { type Programs, runShort } from './programs.ts';

/** Undefined where psql does not know of it, as before 13.22, 14.19, 15.14, 16.10 and 17.6. */
export async function makeRestriction(programs: Programs): Promise<string | undefined> {
  const { stdout } = await runShort(programs, ['psql', '--help=commands'], { okStatuses: [0, 1] });
  return stdout.includes('\\restrict ') ? `\\restrict ${randomBytes(16).toString('hex')}\n` : undefined;
}

/** The comments of a dump, and the restriction that newer ones begin with. */
const headBytes = 4096;
const headPattern = /^((?:(?:--[^\n]*)?\n)*)\\restrict (\w+)\n/;
const tailBytes = 1024;

/** The text of a dump behind the restriction, in the place of its own, whose key anybody can read in it. */
export async function* restrictText(
  chunks: AsyncIterable<Uint8Array>,
  restriction: string = '',
): AsyncGenerator<Uint8Array> {
  yield Buffer.from(restriction);
  let held = Buffer.alloc(0);
  let own: string | undefined;
  let isHead = true;
  const cutHead = (): void => {
    isHead = false;
    const [whole = '', comments = '', key] =
      headPattern.exec(held.subarray(0, headBytes).toString('latin1')) ?? [];
    own = key;
    if (key !== undefined)
      held = Buffer.concat([Buffer.from(comments, 'latin1'), held.subarray(whole.length)]);
  };
  for await (const chunk of chunks) {
    held = Buffer.concat([held, chunk]);
    if (isHead && held.length < headBytes) continue;
    if (isHead) cutHead();
    if (held.length <= tailBytes) continue;
    yield held.subarray(0, -tailBytes);
    held = held.subarray(-tailBytes);
  }
  if (isHead) cutHead();
  yield own === undefined ? held : cutTail(held, own);
}

function cutTail(tail: Buffer, key: string): Buffer {
  const line = `\n\\unrestrict ${key}\n`;
  const at = tail.lastIndexOf(line);
  return at < 0 ? tail : Buffer.concat([tail.subarray(0, at + 1), tail.subarray(at + line.length)]);
}
