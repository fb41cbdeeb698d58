// What rsync tells of a directory while it goes through it. The far side can make it say anything: good for a report and for what is
// gone, never for what is there. Pure.

export type Listed =
  | { kind: 'file' | 'directory'; name: string }
  /** Not taken. */
  | { kind: 'skipped'; name: string; reason: string };

/** Names are as rsync escapes them: `\#012` for a line break. Undefined: nothing about an entry. */
export function parseListedLine(line: string): Listed | undefined {
  const item = /^\|[<>ch.*](.).{9}\|(.+)$/.exec(line);
  if (item !== null) {
    const [, type, name = ''] = item;
    if (type === 'd') return name === './' ? undefined : { kind: 'directory', name: name.replace(/\/$/, '') };
    return { kind: 'file', name };
  }
  const [, irregular] = /^skipping non-regular file "(.+)"$/.exec(line) ?? [];
  if (irregular !== undefined) return { kind: 'skipped', name: irregular, reason: 'it is no plain file' };
  const [, large] = /^(.+) is over max-size$/.exec(line) ?? [];
  return large === undefined ? undefined : { kind: 'skipped', name: large, reason: 'it is too large' };
}

/** `mark`: kind, size and time. The same ones are the same file, as far as a list can tell. */
export type Detail = { name: string; isFile: boolean; sizeBytes: number; mark: string };

/** A line of `--list-only`, with names as above. Undefined: nothing about an entry. */
export function parseDetailLine(line: string): Detail | undefined {
  const match = /^([a-zA-Z-])[a-zA-Z-]{9}\S? +(\d+) (\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d) (.+)$/.exec(line);
  if (match === null) return undefined;
  const [, kind = '', size, time = '', name = ''] = match;
  if (name === '.') return undefined;
  return { name, isFile: kind === '-', sizeBytes: Number(size), mark: `${kind} ${size} ${time}` };
}
