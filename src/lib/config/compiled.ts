// The compiled form of a configuration in the cache directory, so that a timer's run parses neither YAML nor schemas.
// It may hold tokens, hence the mode; it is only a cache, hence nothing here is ever an error.
import { createHash, randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from './config.ts';
import type { Overrides } from './environment.ts';
import type { Paths } from './paths.ts';
import { readSource, type Source } from './sources.ts';

/** Changed with the meaning of what is kept. */
const formatVersion = 1;

/** Units and people differ in their environment, so a few forms are in use at once; the rest is of older files. */
const maxKept = 8;

type Header = { key: string; sum: string; sources: readonly { path: string; digest: string }[] };

/** Names the form made by this build from this main file and this environment. */
export function compiledKey(
  main: Source | undefined,
  around: { paths: Paths; overrides: Overrides; version: string },
): string {
  const { paths, overrides, version } = around;
  const made = [formatVersion, version, main?.digest ?? null, paths, Object.entries(overrides).toSorted()];
  return createHash('sha256').update(JSON.stringify(made)).digest('hex');
}

/** What there is of ours with this key, if it is whole and none of the seed systems' files it names has changed since. */
export async function readCompiled(
  cacheDir: string,
  key: string,
): Promise<{ config: Config; files: readonly string[] } | undefined> {
  try {
    const text = await readOwnFile(fileOf(cacheDir, key));
    const end = text.indexOf('\n');
    const header = JSON.parse(text.slice(0, end)) as Header;
    const body = text.slice(end + 1);
    if (header.key !== key || header.sum !== digest(body)) return undefined;
    for (const { path, digest: known } of header.sources) {
      if ((await readSource(path))?.digest !== known) return undefined;
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
  const temporary = join(cacheDir, `.config-${process.pid}-${randomBytes(6).toString('hex')}.tmp`);
  const body = JSON.stringify(made.config);
  const sources = made.sources.map(({ path, digest: known }) => ({ path, digest: known }));
  const header: Header = { key, sum: digest(body), sources };
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
  return join(cacheDir, `config-${key.slice(0, 32)}.json`);
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Somebody else's file could say anything: only one that is ours, and that only we can write or read, is believed. */
async function readOwnFile(path: string): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const about = await file.stat();
    const isOurs = about.uid === process.geteuid?.() && (about.mode & 0o077) === 0;
    if (!about.isFile() || !isOurs) throw new Error(`${path} is not ours`);
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

async function removeOld(cacheDir: string): Promise<void> {
  const names = (await readdir(cacheDir)).filter((name) => /^config-[0-9a-f]{32}\.json$/.test(name));
  if (names.length <= maxKept) return;
  const aged = await Promise.all(
    names.map(async (name) => ({ name, mtimeMs: (await stat(join(cacheDir, name))).mtimeMs })),
  );
  const old = aged.toSorted((a, b) => b.mtimeMs - a.mtimeMs).slice(maxKept);
  await Promise.all(old.map(({ name }) => rm(join(cacheDir, name), { force: true })));
}
