export const tooDeep = 'it is nested too deeply';

/** How the YAML parser, which works by recursion, says that a document is nested more deeply than it can follow: of its errors. */
export function isTooDeep(message: string): boolean {
  return /call stack|Stack overflow/.test(message);
}
