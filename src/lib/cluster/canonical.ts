// One text for one value: compact JSON with keys sorted byte-wise, for stamps and fingerprints that other programs compute too.

/** Compares by code point, which is UTF-8's byte order. Never by locale, and not by UTF-16 units, which differ beyond U+FFFF. */
export function compareBytewise(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let at = 0; at < length; at++) {
    if (left.charCodeAt(at) === right.charCodeAt(at)) continue;
    return (left.codePointAt(at) as number) - (right.codePointAt(at) as number);
  }
  return left.length - right.length;
}

/** Compact JSON, object keys sorted at every level, lists as they stand. Absent (undefined) fields are left out. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null);
  // Written by hand: an object literal would put keys that look like numbers first, whatever order they were added in.
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([left], [right]) => compareBytewise(left, right))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`);
  return `{${members.join(',')}}`;
}
