// What GNU tar says is in an archive (`--list --verbose --quoting-style=c`), and what of it we refuse. The program that lists is
// the one that unpacks, so that both see the same members. Pure.
import { InputError } from '../../errors.ts';

export type Member = {
  kind: 'file' | 'directory' | 'symlink' | 'hardlink' | 'other';
  name: string;
  sizeBytes: number;
  target: string;
};

export type MemberLimits = {
  members: number;
  /** Of all members' contents together. */
  totalBytes: number;
  fileBytes: number;
  /** Without them no name may come twice, either. */
  links: boolean;
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
  const quoted = Math.max(0, line.indexOf('"'));
  const about = aboutPattern.exec(line.slice(0, quoted));
  const names = namesPattern.exec(line.slice(quoted));
  if (about === null || names === null) throw new InputError(`a member is like none: ${quote(line)}`);
  return {
    kind: kinds[about[1] ?? ''] ?? 'other',
    name: unquote(names[1] ?? ''),
    sizeBytes: Number(about[2]),
    target: unquote(names[2] ?? ''),
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

/** For each member in turn; throws an InputError that names the first that we do not take. */
export function createMemberCheck(limits: MemberLimits): (member: Member) => void {
  const links = new Set<string>();
  const seen = new Set<string>();
  let members = 0;
  let totalBytes = 0;
  return (member) => {
    members += 1;
    if (members > limits.members) throw new InputError(`it has more than ${limits.members} members`);
    totalBytes += member.sizeBytes;
    if (totalBytes > limits.totalBytes) throw new InputError(`it has more than ${limits.totalBytes} bytes`);
    const path = normalize(member.name);
    const fault =
      findFault(member, path, limits) ?? findLinkFault(member, path, links) ?? findTwin(path, seen, limits);
    if (fault !== undefined) throw new InputError(`member ${quote(member.name)} ${fault}`);
    if (member.kind === 'symlink') links.add(path);
  };
}

function findFault(
  { kind, name, sizeBytes }: Member,
  path: string,
  limits: MemberLimits,
): string | undefined {
  if (kind === 'other') return 'is neither file, directory nor link';
  if (isOutside(name)) return 'has a name that leaves the archive';
  if (path === '' && kind !== 'directory') return 'has no name';
  if (sizeBytes > limits.fileBytes) return `is larger than ${limits.fileBytes} bytes`;
  if (!limits.links && (kind === 'symlink' || kind === 'hardlink')) return 'is a link';
  return undefined;
}

/**
 * A link between files has to stay inside. What a symbolic link of the repository names is its content, as git keeps it: nothing
 * is unpacked behind one, and none is ever followed. Of git's own files none may leave.
 */
function findLinkFault(
  { kind, target }: Member,
  path: string,
  links: ReadonlySet<string>,
): string | undefined {
  if (isBehind(path, links)) return 'lies behind a link';
  if (links.has(path)) return 'is there twice, once as a link';
  if (kind === 'hardlink') {
    const reached = normalize(target);
    if (isOutside(target) || links.has(reached) || isBehind(reached, links)) return 'is a link that leaves';
  }
  if (kind !== 'symlink') return undefined;
  const isOfGit = path.split('/').includes('.git');
  return target === '' || (isOfGit && !isInside(path, target)) ? 'is a link that leaves' : undefined;
}

function findTwin(path: string, seen: Set<string>, { links }: MemberLimits): string | undefined {
  if (links) return undefined;
  if (seen.has(path)) return 'is there twice';
  seen.add(path);
  return undefined;
}

/** Whether a symbolic link at `path` names something below the root, by its words. */
export function isInside(path: string, link: string): boolean {
  if (link.startsWith('/')) return false;
  let depth = path.split('/').length - 1;
  for (const part of link.split('/')) {
    if (part === '' || part === '.') continue;
    depth += part === '..' ? -1 : 1;
    if (depth < 0) return false;
  }
  return true;
}

function isOutside(name: string): boolean {
  return name === '' || name.startsWith('/') || name.split('/').includes('..');
}

function isBehind(path: string, links: ReadonlySet<string>): boolean {
  for (let slash = path.indexOf('/'); slash >= 0; slash = path.indexOf('/', slash + 1)) {
    if (links.has(path.slice(0, slash))) return true;
  }
  return false;
}

/** Without `.` and double slashes; empty for the root itself. */
function normalize(name: string): string {
  return name
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/');
}

function quote(name: string): string {
  return JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}...` : name);
}
