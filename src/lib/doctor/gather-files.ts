// Looks at directories and files without opening what it need not.
import { X509Certificate } from 'node:crypto';
import { constants } from 'node:fs';
import { access, lstat, readdir, readFile, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hasCertificate } from '../bootstrap/presence.ts';
import type { JobsConfig } from '../config/config.ts';
import { systemErrorCode } from '../errors.ts';
import { readDisks } from '../host/sample.ts';
import { findTlsFault } from '../http/tls.ts';
import { describeCause } from '../state/file-error.ts';
import type { CertificateFacts, DirectoryFacts, DiskFacts, KeyFacts, PathFacts } from './judge-files.ts';
import type { World } from './world.ts';

/** A secrets directory larger than this is somebody's home directory. */
const mostFiles = 1000;

export async function gatherDirectories({ base, config }: World): Promise<DirectoryFacts[]> {
  const { stateDir, runDir, cacheDir, locksDir, wakeDir } = base.paths;
  // A machine that only deploys takes no lock.
  const isNode = [config?.cluster?.nodeId, config?.jobs, config?.commands, config?.actions].some(Boolean);
  const wanted = [
    { path: stateDir, isPrivate: true, isMadeAtBoot: false },
    { path: cacheDir, isPrivate: false, isMadeAtBoot: false },
    { path: runDir, isPrivate: false, isMadeAtBoot: false },
    // Whoever can open a lock file can hold it.
    { path: locksDir, isPrivate: true, isMadeAtBoot: isNode && locksDir.startsWith('/run/') },
    { path: wakeDir, isPrivate: false, isMadeAtBoot: false },
  ];
  return await Promise.all(
    wanted.map(async (directory) => ({
      ...directory,
      ...(await lookAt(directory.path)),
      writable: await isWritable(directory.path),
    })),
  );
}

export async function lookAt(path: string): Promise<PathFacts> {
  try {
    const { mode, uid } = await stat(path);
    return { path, mode: mode & 0o7777, uid };
  } catch (error) {
    const absent = { path, mode: undefined, uid: undefined };
    return systemErrorCode(error) === 'ENOENT' ? absent : { ...absent, error: describeCause(error) };
  }
}

/** Secrets as files, registry credentials, and the keys of control planes. */
export async function gatherSecrets({ base, config }: World): Promise<PathFacts[]> {
  const { cluster, jobs, commands } = config ?? {};
  const credentials = join(dirname(base.paths.configFile), 'docker', 'config.json');
  const single = [credentials, jobs?.http.tls.keyPath, commands?.tls?.keyPath];
  const files = await Promise.all(single.filter((path) => path !== undefined).map(lookAt));
  if (cluster === undefined || !cluster.secrets.startsWith('file:')) return files;
  return [...files, ...(await walk(fileURLToPath(cluster.secrets)))];
}

/** The directory itself, and what is in it. */
async function walk(root: string): Promise<PathFacts[]> {
  const found = [await lookAt(root)];
  if (found[0]?.mode === undefined) return found;
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  for (const entry of entries.slice(0, mostFiles)) {
    if (entry.isFile()) found.push(await lookAt(join(entry.parentPath, entry.name)));
  }
  return found;
}

/** `*.corrupt-<stamp>` anywhere in the state directory but in the store and other trees of data. */
export async function gatherLeftovers({ base }: World): Promise<string[]> {
  const { stateDir } = base.paths;
  const directories = ['', 'runs', 'failures', 'jobs', 'commands', 'actions', 'backoff'];
  const found: string[] = [];
  for (const name of directories) {
    const directory = join(stateDir, name);
    const names = await readdir(directory).catch((error: unknown) => {
      if (systemErrorCode(error) === 'ENOENT') return [];
      throw error;
    });
    found.push(...names.filter((file) => /\.corrupt-/.test(file)).map((file) => join(directory, file)));
  }
  return found.sort();
}

export async function gatherCertificates({ config }: World): Promise<CertificateFacts[]> {
  const { jobs, commands } = config ?? {};
  const ofJobs = jobs?.http.tls.enabled === true ? await gatherJobCertificates(jobs) : [];
  const ofCommands = [commands?.tls?.certPath, commands?.tls?.caPath];
  const paths = [...new Set([...ofJobs, ...ofCommands].filter((path) => path !== undefined))];
  return await Promise.all(
    paths.map(async (path) => {
      const isOfJobs = ofJobs.includes(path);
      const setting = [isOfJobs ? ['jobs.http.tls'] : [], ofCommands.includes(path) ? ['commands.tls'] : []];
      return { setting: setting.flat().join(' and '), ...(await readCertificate(path)) };
    }),
  );
}

/** Where none was issued yet, the exchange of a token brings both: the check of jobs tells how. */
async function gatherJobCertificates(jobs: JobsConfig): Promise<(string | undefined)[]> {
  const { certPath, caPath, bootstrapCaPath } = jobs.http.tls;
  return (await hasCertificate(jobs)) ? [certPath, caPath, bootstrapCaPath] : [bootstrapCaPath];
}

async function readCertificate(path: string): Promise<Omit<CertificateFacts, 'setting'>> {
  try {
    const text = await readFile(path, 'utf8');
    const fault = findTlsFault({ cert: text });
    if (fault !== undefined) return { path, validTo: undefined, error: `it ${fault.why}` };
    return { path, validTo: new Date(new X509Certificate(text).validTo) };
  } catch (error) {
    return { path, validTo: undefined, error: describeCause(error) };
  }
}

/** Of the commands' API: the check of jobs looks at theirs. Undefined where there is nothing to complain of. */
export async function gatherKey({ config }: World): Promise<KeyFacts | undefined> {
  const { tls } = config?.commands ?? {};
  if (tls === undefined) return undefined;
  const about = { path: tls.keyPath, certPath: tls.certPath, setting: 'commands.tls' };
  try {
    const key = await readFile(tls.keyPath, 'utf8');
    // One that cannot be read is told of itself.
    const cert = await readFile(tls.certPath, 'utf8').catch(() => undefined);
    const isSound = cert !== undefined && findTlsFault({ cert }) === undefined;
    const fault = findTlsFault(isSound ? { cert, key } : { key });
    return fault === undefined ? undefined : { ...about, problem: `it ${fault.why}` };
  } catch (error) {
    return { ...about, problem: `it cannot be read: ${describeCause(error)}` };
  }
}

/** Where state, images, temporary files and the store grow; each file system once. */
export async function gatherDisks({ base, config }: World): Promise<DiskFacts[]> {
  const { cluster } = config ?? {};
  const paths = [base.paths.stateDir, '/var/lib/docker', tmpdir()];
  if (cluster?.store.startsWith('file:')) paths.push(fileURLToPath(cluster.store));
  const devices = new Map<number, string>();
  for (const path of paths) {
    const present = await nearestPresent(path);
    const { dev } = await lstat(present);
    if (!devices.has(dev)) devices.set(dev, present);
  }
  return await readDisks([...devices.values()]);
}

/** What is not there yet will be where its parent is. */
async function nearestPresent(path: string): Promise<string> {
  const isThere = await access(path).then(
    () => true,
    () => false,
  );
  return isThere || dirname(path) === path ? path : await nearestPresent(dirname(path));
}

async function isWritable(path: string): Promise<boolean> {
  return await access(path, constants.W_OK).then(
    () => true,
    () => false,
  );
}
