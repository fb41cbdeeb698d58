// The members of a tar archive, looked at as they go by: nothing is unpacked of an archive in which one of them could leave its
// place, be something else than files, directories and links, or be too much. Pure but for what it keeps of the archive.
import { InputError } from '../../errors.ts';

export type MemberLimits = {
  members: number;
  /** Of all members' contents together. */
  totalBytes: number;
  fileBytes: number;
  /** Whether there may be links at all. */
  links: boolean;
};

export type MemberScan = { push(chunk: Uint8Array): void; end(): { members: number; totalBytes: number } };

const blockBytes = 512;
/** Of a long name or of extended attributes. */
const maxMetaBytes = 1024 * 1024;

type Header = { name: string; type: string; size: number; link: string };
type Meta = { path?: string; linkpath?: string; size?: number };

/** Both throw an InputError that names what is wrong. */
export function scanMembers(limits: MemberLimits): MemberScan {
  const rules = createRules(limits);
  let block = Buffer.alloc(0);
  /** Of the member's content with its padding, still to come. */
  let skipBytes = 0;
  let metaType: string | undefined;
  let meta: Buffer[] = [];
  let metaSize = 0;
  let next: Meta = {};
  let hasEnded = false;
  const finishMeta = (): void => {
    const bytes = Buffer.concat(meta).subarray(0, metaSize);
    if (metaType === 'L') next.path = cutText(bytes);
    else if (metaType === 'K') next.linkpath = cutText(bytes);
    else if (metaType === 'x') next = { ...next, ...parsePax(bytes) };
    metaType = undefined;
    meta = [];
  };
  const takeHeader = (bytes: Buffer): void => {
    if (bytes.every((byte) => byte === 0)) {
      hasEnded = true;
      return;
    }
    const header = parseHeader(bytes);
    const size = next.size !== undefined && !'xgLK'.includes(header.type) ? next.size : header.size;
    skipBytes = Math.ceil(size / blockBytes) * blockBytes;
    if ('xgLK'.includes(header.type)) {
      if (size > maxMetaBytes) throw refuse('a header is too large');
      metaType = header.type;
      metaSize = size;
      if (size === 0) finishMeta();
      return;
    }
    rules.check({ ...header, size, name: next.path ?? header.name, link: next.linkpath ?? header.link });
    // Links and directories have no content, whatever their size says.
    if (header.type === '1' || header.type === '2' || header.type === '5') skipBytes = 0;
    next = {};
  };
  return {
    push: (chunk) => {
      let rest = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      while (rest.length > 0 && !hasEnded) {
        if (skipBytes > 0) {
          const part = rest.subarray(0, Math.min(skipBytes, rest.length));
          if (metaType !== undefined) meta.push(Buffer.from(part));
          skipBytes -= part.length;
          rest = rest.subarray(part.length);
          if (skipBytes === 0 && metaType !== undefined) finishMeta();
          continue;
        }
        const part = rest.subarray(0, blockBytes - block.length);
        block = block.length === 0 ? Buffer.from(part) : Buffer.concat([block, part]);
        rest = rest.subarray(part.length);
        if (block.length < blockBytes) continue;
        const header = block;
        block = Buffer.alloc(0);
        takeHeader(header);
      }
    },
    end: () => {
      if (skipBytes > 0 || block.length > 0) throw refuse('it ends in the middle of a member');
      return rules.sum();
    },
  };
}

function createRules(limits: MemberLimits) {
  const links = new Set<string>();
  const files = limits.links ? undefined : new Set<string>();
  let members = 0;
  let totalBytes = 0;
  const check = ({ name, type, size, link }: Header): void => {
    members += 1;
    if (members > limits.members) throw refuse(`it has more than ${limits.members} members`);
    const path = requireInside(name);
    for (const above of ancestors(path)) {
      if (links.has(above)) throw refuse(`member ${quote(name)} lies behind the link ${quote(above)}`);
    }
    if (links.has(path)) throw refuse(`member ${quote(name)} is there twice, once as a link`);
    if (type === '5') return;
    if (type === '1' || type === '2') {
      if (!limits.links) throw refuse(`member ${quote(name)} is a link`);
      requireLink({ name, path, type, link, links });
      if (type === '2') links.add(path);
      return;
    }
    if (!['0', '\0', ''].includes(type)) throw refuse(`member ${quote(name)} is neither file, directory nor link`);
    if (path === '') throw refuse('a file has no name');
    if (files?.has(path) === true) throw refuse(`member ${quote(name)} is there twice`);
    files?.add(path);
    if (size > limits.fileBytes) throw refuse(`member ${quote(name)} is larger than ${limits.fileBytes} bytes`);
    totalBytes += size;
    if (totalBytes > limits.totalBytes) throw refuse(`it has more than ${limits.totalBytes} bytes`);
  };
  return { check, sum: () => ({ members, totalBytes }) };
}

/**
 * A link between files has to stay inside. What a symbolic link of the repository names is its content, as git keeps it: nothing
 * is unpacked behind one, and none is ever followed. Of git's own files none may leave.
 */
function requireLink(about: { name: string; path: string; type: string; link: string; links: Set<string> }): void {
  const { name, path, type, link, links } = about;
  if (link === '' || link.includes('\0')) throw refuse(`the link ${quote(name)} names nothing`);
  if (type === '1') {
    const target = requireInside(link);
    if ([...ancestors(target), target].some((part) => links.has(part))) {
      throw refuse(`the link ${quote(name)} goes through another one`);
    }
    return;
  }
  const isOfGit = path.split('/').includes('.git');
  if (isOfGit && !isInside(path, link)) throw refuse(`the link ${quote(name)} leaves the archive`);
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

/** Without `.` and double slashes; empty for the root itself. */
function requireInside(name: string): string {
  if (name === '' || name.includes('\0')) throw refuse('a member has no name');
  if (name.startsWith('/')) throw refuse(`member ${quote(name)} has an absolute name`);
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw refuse(`member ${quote(name)} has ".." in its name`);
  return parts.join('/');
}

function* ancestors(path: string): Generator<string> {
  for (let slash = path.indexOf('/'); slash >= 0; slash = path.indexOf('/', slash + 1)) yield path.slice(0, slash);
}

function parseHeader(block: Buffer): Header {
  let sum = 8 * 0x20;
  for (const [index, byte] of block.entries()) if (index < 148 || index >= 156) sum += byte;
  if (parseNumber(block.subarray(148, 156)) !== sum) throw refuse('a header is damaged');
  const magic = block.toString('latin1', 257, 263);
  const name = cutText(block.subarray(0, 100));
  const prefix = magic === 'ustar\0' ? cutText(block.subarray(345, 500)) : '';
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    type: String.fromCharCode(block[156] ?? 0).replace('\0', '0'),
    size: parseNumber(block.subarray(124, 136)),
    link: cutText(block.subarray(157, 257)),
  };
}

/** Octal digits, or GNU's binary for what is too large for them. */
function parseNumber(field: Buffer): number {
  if (((field[0] ?? 0) & 0x80) !== 0) {
    const value = BigInt(`0x${field.toString('hex')}`) & ((1n << BigInt(field.length * 8 - 1)) - 1n);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw refuse('a size is out of all proportion');
    return Number(value);
  }
  const digits = field.toString('latin1').replaceAll('\0', ' ').trim();
  if (!/^[0-7]*$/.test(digits)) throw refuse('a header is damaged');
  return Number.parseInt(digits || '0', 8);
}

/** `LENGTH KEY=VALUE\n`, one after another. Sparse files, whose real size stands elsewhere, are refused. */
function parsePax(bytes: Buffer): Meta {
  const meta: Meta = {};
  let at = 0;
  while (at < bytes.length && bytes[at] !== 0) {
    const space = bytes.indexOf(0x20, at);
    const length = Number(bytes.toString('latin1', at, space));
    if (space < 0 || !Number.isSafeInteger(length) || length < 5 || at + length > bytes.length) {
      throw refuse('an extended header is damaged');
    }
    const record = bytes.toString('utf8', space + 1, at + length - 1);
    const [key, value] = [record.slice(0, record.indexOf('=')), record.slice(record.indexOf('=') + 1)];
    if (key === 'path' || key === 'linkpath') meta[key] = value;
    if (key === 'size') meta.size = /^\d{1,15}$/.test(value) ? Number(value) : 0;
    if (key.startsWith('GNU.sparse')) throw refuse('it has a sparse file');
    at += length;
  }
  return meta;
}

function cutText(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  return bytes.toString('utf8', 0, end < 0 ? bytes.length : end);
}

function quote(name: string): string {
  return JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}…` : name);
}

function refuse(cause: string): InputError {
  return new InputError(`cannot unpack the archive: ${cause}`);
}
