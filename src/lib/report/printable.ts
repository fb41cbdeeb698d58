// Text that may be somebody else's, as a terminal or a journal is given it: a control character would be obeyed, and what decides on
// the order of others would have people read another text than there is. Pure.

/** systemd's LineMax is 48 KiB; a line far below it stays one journal entry. */
const maxLineLength = 8000;

/** One line, and no longer than a journal entry may be. */
export function toLine(text: string): string {
  return escapeControls(text.replaceAll('\n', '\\n')).slice(0, maxLineLength);
}

/** Line breaks and tabs stay: they are ours. So do the two that join what is beside them or not: languages and emoji need them. */
const unsafe = /[^\P{Cc}\n\t]|[\p{Zl}\p{Zp}]|(?!\u200c|\u200d)\p{Cf}/gu;

export function escapeControls(text: string): string {
  return text.replaceAll(unsafe, escapeOne);
}

function escapeOne(character: string): string {
  const digits = (character.codePointAt(0) ?? 0).toString(16).padStart(4, '0');
  return digits.length === 4 ? `\\u${digits}` : `\\u{${digits}}`;
}
