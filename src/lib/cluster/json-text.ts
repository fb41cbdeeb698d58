// The outline of a JSON text: where its members and elements stand, so that what is not ours can stay as it is. What is given
// is known to be JSON. Pure.

/** A member of an object; `start` and `end` are where its value stands. */
export type Member = { name: string; text: string; start: number; end: number };

export function splitObject(text: string): Member[] {
  const members: Member[] = [];
  let at = skipBlank(text, skipBlank(text, 0) + 1);
  while (text[at] !== '}') {
    const nameEnd = endOfValue(text, at);
    const start = skipBlank(text, skipBlank(text, nameEnd) + 1);
    const end = endOfValue(text, start);
    const name = JSON.parse(text.slice(at, nameEnd)) as string;
    members.push({ name, text: text.slice(start, end), start, end });
    at = skipComma(text, end);
  }
  return members;
}

export function splitList(text: string): string[] {
  const elements: string[] = [];
  let at = skipBlank(text, 1);
  while (text[at] !== ']') {
    const to = endOfValue(text, at);
    elements.push(text.slice(at, to));
    at = skipComma(text, to);
  }
  return elements;
}

function skipComma(text: string, at: number): number {
  const next = skipBlank(text, at);
  return text[next] === ',' ? skipBlank(text, next + 1) : next;
}

function skipBlank(text: string, start: number): number {
  let at = start;
  while (' \t\r\n'.includes(text[at] ?? '.')) at++;
  return at;
}

function endOfValue(text: string, start: number): number {
  const first = text[start] as string;
  if (first === '"') return endOfString(text, start);
  if (first === '{' || first === '[') return endOfNested(text, start);
  let at = start;
  while (!',]} \t\r\n'.includes(text[at] ?? ',')) at++;
  return at;
}

function endOfNested(text: string, start: number): number {
  let depth = 0;
  let at = start;
  do {
    const character = text[at] as string;
    if (character === '{' || character === '[') depth++;
    if (character === '}' || character === ']') depth--;
    at = character === '"' ? endOfString(text, at) : at + 1;
  } while (depth > 0);
  return at;
}

function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}
