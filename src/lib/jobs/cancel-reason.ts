// Why somebody asked for a job's end: one line of bounded length, as it stands in records, in `job show` and in the journal.

const mostCharacters = 1000;

/** Empty where nothing of the text is left. */
export function cleanReason(text: string): string {
  return text
    .trim()
    .replaceAll(/\p{Cc}+/gu, ' ')
    .slice(0, mostCharacters);
}
