// Text that may be somebody else's, as a terminal or a journal is given it: a control character would be obeyed. Pure.

/** systemd's LineMax is 48 KiB; a line far below it stays one journal entry. */
const maxLineLength = 8000;

/** One line, and no longer than a journal entry may be. */
export function toLine(text: string): string {
  return escapeControls(text.replaceAll('\n', '\\n')).slice(0, maxLineLength);
}

/** Line breaks and tabs stay: they are ours. */
export function escapeControls(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]/gu, escapeOne);
}

function escapeOne(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
