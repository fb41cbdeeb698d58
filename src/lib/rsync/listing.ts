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
