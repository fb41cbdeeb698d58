// The compiled form of a configuration in the cache directory, so that a timer's run parses neither YAML nor schemas.
// It holds the sources' text to compare them with, which costs less than loading node:crypto for a digest. So it may
// hold tokens, hence the mode; it is only a cache, hence nothing here is ever an error.
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from './config.ts';
import type { Overrides } from './environment.ts';
import type { Paths } from './paths.ts';
import { readSource, type Source } from './sources.ts';

/** Changed with the meaning of what is kept. */
const formatVersion = 2;

/** Units and people differ in their environment, so a few forms are in use at once; the rest is of older builds. */
const maxKept = 8;

type Header = { key: string; sum: string; sources: readonly Source[] };

/** Names the form made by this build in this environment. */
export function compiledKey(around: { paths: Paths; overrides: Overrides; version: string }): string {
  const { paths, overrides, version } = around;
  return JSON.stringify([formatVersion, version, paths, Object.entries(overrides).toSorted()]);
}

/** What there is of ours with this key, if it is whole and was made from the sources as they are now. */
export function readCompiled(
  cacheDir: string,
  key: string,
  main: Source | undefined,
): { config: Config; files: readonly string[] } | undefined {
  try {
    const text = readOwnFile(fileOf(cacheDir, key));
    const end = text.indexOf('\n');
    const header = JSON.parse(text.slice(0, end)) as Header;
    const body = text.slice(end + 1);
    if (header.key !== key || header.sum !== checksum(body)) return undefined;
    if (main !== undefined && header.sources[0]?.path !== main.path) return undefined;
    for (const source of header.sources) {
      const now = source.path === main?.path ? main : readSource(source.path);
      if (now?.text !== source.text || now.mode !== source.mode) return undefined;
    }
    return { config: JSON.parse(body) as Config, files: header.sources.map(({ path }) => path) };
  } catch {
    return undefined;
  }
}

/** Answers whether it could be kept. */
export async function writeCompiled(
  cacheDir: string,
  key: string,
  made: { config: Config; sources: readonly Source[] },
): Promise<boolean> {
  const temporary = join(cacheDir, `.config-${process.pid}-${Date.now().toString(36)}.tmp`);
  const body = JSON.stringify(made.config);
  const header: Header = { key, sum: checksum(body), sources: made.sources };
  try {
    await mkdir(cacheDir, { recursive: true });
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(`${JSON.stringify(header)}\n${body}`);
    } finally {
      await file.close();
    }
    await rename(temporary, fileOf(cacheDir, key));
    await removeOld(cacheDir);
    return true;
  } catch {
    await rm(temporary, { force: true }).catch(() => {});
    return false;
  }
}

function fileOf(cacheDir: string, key: string): string {
  return join(cacheDir, `config-${checksum(key)}.json`);
}

/** FNV-1a, 32 bits: tells a damaged form, and keys apart well enough, as the key itself is compared as well. */
export function checksum(text: string): string {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0).toString(16).padStart(8, '0');
}

/** Somebody else's file could say anything: only one that is ours, and that only we can write or read, is believed. */
function readOwnFile(path: string): string {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const about = fstatSync(fd);
    const isOurs = about.uid === process.geteuid?.() && (about.mode & 0o077) === 0;
    if (!about.isFile() || !isOurs) throw new Error(`${path} is not ours`);
    return readFileSync(fd, 'utf8');
  } finally {
    closeSync(fd);
  }
}

async function removeOld(cacheDir: string): Promise<void> {
  const names = (await readdir(cacheDir)).filter((name) => /^config-[0-9a-f]{8}\.json$/.test(name));
  if (names.length <= maxKept) return;
  const aged = await Promise.all(
    names.map(async (name) => ({ name, mtimeMs: (await stat(join(cacheDir, name))).mtimeMs })),
  );
  const old = aged.toSorted((a, b) => b.mtimeMs - a.mtimeMs).slice(maxKept);
  await Promise.all(old.map(({ name }) => rm(join(cacheDir, name), { force: true })));
}
