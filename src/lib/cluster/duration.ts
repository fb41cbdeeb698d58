// Durations as desired.json writes them: a whole number of ms, s or m. More words exist in our own configuration (time.ts).

const wireDuration = /^(\d{1,12})(ms|s|m)$/;

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000 };

export function isWireDuration(text: string): boolean {
  return wireDuration.test(text);
}

/** Milliseconds; 0 for what is no duration, as launch-pad's agent takes it. */
export function parseWireDuration(text: string): number {
  const match = wireDuration.exec(text);
  if (match === null) return 0;
  return Number(match[1]) * (unitMs[match[2] as string] as number);
}
