// What GNU tar says is in an archive (`--list --verbose --quoting-style=c`), and what of it we refuse. The program that lists is
// the one that unpacks, so that both see the same names. Pure.
import { posix } from 'node:path';
import { InputError } from '../../errors.ts';

export type Member = {
  kind: 'file' | 'directory' | 'symlink' | 'hardlink' | 'other';
  name: string;
  sizeBytes: number;
  target: string | undefined;
};

export type ArchiveRules = {
  /** For messages: `the snapshot`. */
  what: string;
  maxMembers: number;
  maxTotalBytes: number;
  maxFileBytes: number;
  links: 'inside' | 'none';
  duplicates: 'last' | 'none';
};

const kinds: Readonly<Record<string, Member['kind']>> = {
  '-': 'file',
  d: 'directory',
  l: 'symlink',
  h: 'hardlink',
};
const aboutPattern = /^(\S)\S* +\S+\/\S+ +(\d+)/;
const namesPattern = /^"((?:[^"\\]|\\.)*)"(?: (?:->|link to) "((?:[^"\\]|\\.)*)")?$/;

/** Throws InputError for a line that no tar prints of what we take. */
export function parseMember(line: string): Member {
  const quote = line.indexOf('"');
  const about = aboutPattern.exec(line.slice(0, Math.max(0, quote)));
  const names = namesPattern.exec(line.slice(Math.max(0, quote)));
  if (about === null || names === null) throw new InputError(`cannot read archive: ${JSON.stringify(line)}`);
  return {
    kind: kinds[about[1] ?? ''] ?? 'other',
    name: unquote(names[1] ?? ''),
    sizeBytes: Number(about[2]),
    target: names[2] === undefined ? undefined : unquote(names[2]),
  };
}

const escapes: Readonly<Record<string, string>> = {
  ...{ a: '\u0007', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' },
};

/** Bytes that are no ASCII come as octal numbers: each is a character of its own here. */
function unquote(text: string): string {
  return text.replace(/\\([0-7]{1,3}|.)/g, (_, what: string) =>
    /^[0-7]/.test(what) ? String.fromCharCode(Number.parseInt(what, 8)) : (escapes[what] ?? what),
  );
}

/** A function for each member in turn that throws InputError for the first that we do not take. */
export function createMemberCheck(rules: ArchiveRules): (member: Member) => void {
  const seen = new Set<string>();
  let members = 0;
  let totalBytes = 0;
  return (member) => {
    members += 1;
    totalBytes += member.sizeBytes;
    const reason = findFault(member, rules) ?? findExcess({ members, totalBytes }, rules);
    if (reason !== undefined) throw refusal(rules, member, reason);
    if (rules.duplicates === 'last') return;
    const name = posix.normalize(member.name).replace(/\/$/, '');
    if (seen.has(name)) throw refusal(rules, member, 'is there twice');
    seen.add(name);
  };
}

function refusal({ what }: ArchiveRules, { name }: Member, reason: string): InputError {
  const shown = name.length <= 200 ? name : `${name.slice(0, 197)}...`;
  return new InputError(`cannot take ${what}: ${JSON.stringify(shown)} ${reason}`, { code: 'archive' });
}

function findFault({ kind, name, sizeBytes, target }: Member, rules: ArchiveRules): string | undefined {
  if (kind === 'other') return 'is neither a file nor a directory nor a link';
  if (isOutside(name)) return 'lies outside';
  if (sizeBytes > rules.maxFileBytes) return `has more than ${rules.maxFileBytes} bytes`;
  if (kind !== 'symlink' && kind !== 'hardlink') return undefined;
  if (rules.links === 'none') return 'is a link';
  if (target === undefined || target === '' || target.startsWith('/')) return 'is a link that leads outside';
  const reached = kind === 'hardlink' ? target : posix.join(posix.dirname(name), target);
  const leads = kind === 'hardlink' ? isOutside(target) : posix.normalize(reached).split('/')[0] === '..';
  return leads ? 'is a link that leads outside' : undefined;
}

function isOutside(name: string): boolean {
  return name === '' || name.startsWith('/') || name.split('/').includes('..');
}

function findExcess(
  { members, totalBytes }: { members: number; totalBytes: number },
  { maxMembers, maxTotalBytes }: ArchiveRules,
): string | undefined {
  if (members > maxMembers) return `is one of more than ${maxMembers} members`;
  return totalBytes > maxTotalBytes ? `makes it more than ${maxTotalBytes} bytes` : undefined;
}
