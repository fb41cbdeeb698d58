// Text as the server's database takes it. Pure. A single character 0 would have the whole refused, as the server's own trouble.

// With `u`, only a surrogate that has no other half.
const unstorable = /[\0\ud800-\udfff]/gu;

/** A copy in which each character that PostgreSQL does not keep has become the one for what cannot be shown. */
export function toStorable<T>(value: T): T {
  return convert(value) as T;
}

function convert(value: unknown): unknown {
  if (typeof value === 'string') return value.replace(unstorable, '\ufffd');
  if (Array.isArray(value)) return value.map(convert);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, one]) => [
    name.replace(unstorable, '\ufffd'),
    convert(one),
  ]);
  return Object.fromEntries(entries);
}
