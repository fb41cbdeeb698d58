// Sizes as people read them. Pure.

/** `850 B`, `12.3 MB`; thousands. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const at = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  return `${Number((bytes / 1000 ** at).toFixed(at === 0 ? 0 : 1))} ${units[at]}`;
}
