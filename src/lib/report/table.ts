// Columns for people: as wide as their widest cell, two spaces apart, no trailing blanks. Pure.

export function renderTable(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const lines = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  return lines.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** A text of several lines as one cell: begin and end, as what a program said last is often the part that matters. */
export function foldLines(text: string, maxLength = 240): string {
  const folded = text
    .trim()
    .replaceAll(/:\s*\n\s*/g, ': ')
    .replaceAll(/\s*\n\s*/g, ' | ');
  if (folded.length <= maxLength) return folded;
  const end = Math.floor(maxLength / 3);
  return `${folded.slice(0, maxLength - end - 5)} ... ${folded.slice(-end)}`;
}
