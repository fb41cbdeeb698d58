// Sizes as people write them for containers: `512m`, `2G`, `1073741824`. Pure.

const units: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  k: 1 << 10,
  m: 1 << 20,
  g: 1 << 30,
  t: 2 ** 40,
};

/** In bytes; undefined for what is no size, and for zero. */
export function parseSize(text: string): number | undefined {
  const [, amount, unit = ''] = /^\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*$/i.exec(text) ?? [];
  if (amount === undefined) return undefined;
  const bytes = Math.round(Number(amount) * (units[unit.toLowerCase()] ?? 1));
  return bytes > 0 ? bytes : undefined;
}
