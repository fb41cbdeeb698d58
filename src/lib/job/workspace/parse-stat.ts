// What git counts in a diff: ` 2 files changed, 5 insertions(+), 1 deletion(-)`. Pure.

export type DiffCounts = { filesChanged: number; linesAdded: number; linesRemoved: number };

export function parseShortStat(text: string): DiffCounts | undefined {
  const files = /(\d+) files? changed/.exec(text);
  if (files === null) return undefined;
  return {
    filesChanged: Number(files[1]),
    linesAdded: Number(/(\d+) insertions?\(\+\)/.exec(text)?.[1] ?? 0),
    linesRemoved: Number(/(\d+) deletions?\(-\)/.exec(text)?.[1] ?? 0),
  };
}
