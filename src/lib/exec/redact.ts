// Takes secret values out of text that people will see: messages, argv, last lines of output.

export type Redact = (text: string) => string;

/** Shorter values would turn ordinary words into stars and so tell more than they hide. */
const minSecretLength = 4;
/** Pieces of a secret (a line, the stable middle of a base64 form) are hidden only when they are telling. */
const minPieceLength = 8;

export const redactNothing: Redact = (text) => text;

/** Replaces each secret by `***`, also where it stands escaped in JSON or a URL, in base64, or line by line. */
export function createRedactor(secrets: Iterable<string>): Redact {
  const forms = new Set<string>();
  for (const secret of secrets) {
    if (secret.trim().length < minSecretLength) continue;
    for (const form of listForms(secret)) forms.add(form);
  }
  if (forms.size === 0) return redactNothing;
  // Longest first: where one secret contains another, nothing of the longer one may stay.
  const sorted = [...forms].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(sorted.map(escapePattern).join('|'), 'g');
  return (text) => text.replace(pattern, '***');
}

function listForms(secret: string): string[] {
  const whole = [secret, secret.trim()];
  const lines = secret
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line.length >= minPieceLength);
  const escaped = whole.flatMap((text) => [JSON.stringify(text).slice(1, -1), escapeUrl(text)]);
  return [...whole, ...lines, ...escaped, ...whole.flatMap(listBase64Forms)];
}

/** `user:password` puts the secret at any of three alignments; the characters that its neighbours share are left out. */
function listBase64Forms(text: string): string[] {
  const bytes = Buffer.from(text);
  const forms = [bytes.toString('base64'), bytes.toString('base64url')];
  for (const shift of [0, 1, 2]) {
    const shifted = Buffer.concat([Buffer.alloc(shift), bytes]);
    const stable = shifted
      .toString('base64url')
      .slice(Math.ceil((shift * 8) / 6), Math.floor((shifted.length * 8) / 6));
    if (stable.length < minPieceLength) continue;
    forms.push(stable, stable.replaceAll('-', '+').replaceAll('_', '/'));
  }
  return forms;
}

function escapeUrl(text: string): string {
  return /\p{Cs}/u.test(text) ? text : encodeURIComponent(text);
}

function escapePattern(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
