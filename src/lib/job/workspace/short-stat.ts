// The one line in which git sums a diff up. Pure.

export type DiffStat = { filesChanged: number; linesAdded: number; linesRemoved: number };

/** Undefined where there is no difference at all. */
export function parseShortStat(text: string): DiffStat | undefined {
  const count = (pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? 0);
  const filesChanged = count(/(\d+) files? changed/);
  if (filesChanged === 0) return undefined;
  return {
    filesChanged,
    linesAdded: count(/(\d+) insertions?\(\+\)/),
    linesRemoved: count(/(\d+) deletions?\(-\)/),
  };
}
