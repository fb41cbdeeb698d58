// Ports of TCP, as numbers and as text. Pure.

export function isPort(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) > 0 && (value as number) < 65_536;
}

/** In digits alone, without zeros before them. */
export function toPort(text: string): number | undefined {
  const port = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : undefined;
  return isPort(port) ? port : undefined;
}
