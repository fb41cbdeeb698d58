// Checks for the shape of our own state files, by hand: a schema library would cost every timer's run its start-up.

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The text under a name. Throws TypeError, which a document's reader takes for the wrong shape. */
export function requireText(raw: unknown, name: string): string {
  const value = isRecord(raw) ? raw[name] : undefined;
  if (typeof value !== 'string') throw new TypeError(`${name} is no text`);
  return value;
}

/** The map under a name, each of whose values has passed the check. Throws TypeError. */
export function requireRecordOf<T>(
  raw: unknown,
  name: string,
  isValue: (value: unknown) => value is T,
): Readonly<Record<string, T>> {
  const value = isRecord(raw) ? raw[name] : undefined;
  if (!isRecord(value)) throw new TypeError(`${name} is no map`);
  for (const [key, entry] of Object.entries(value)) {
    if (!isValue(entry)) throw new TypeError(`${name}.${key} has the wrong shape`);
  }
  return value as Record<string, T>;
}
