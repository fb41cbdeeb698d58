// Directories, secrets and what lies about: are they there, whose are they, who may do what. Pure.
import { type Finding, failure, listNames, ok, orOk, plural, warning } from './finding.ts';

/** A path as it is on disk; `mode` and `uid` are undefined where there is nothing. */
export type PathFacts = { path: string; mode: number | undefined; uid: number | undefined; error?: string };

export type DirectoryFacts = PathFacts & {
  /** Nobody but its owner, and at most its group, may look into it. */
  isPrivate: boolean;
  /** We may write into it. */
  writable: boolean;
  /** Made by systemd-tmpfiles, never by us. */
  isMadeAtBoot: boolean;
};

export function judgeDirectories(directories: readonly DirectoryFacts[], ownUid: number): Finding[] {
  const present = directories.filter(({ mode }) => mode !== undefined);
  return orOk(
    directories.flatMap((directory) => judgeDirectory(directory, ownUid)),
    ok(present.length === 0 ? 'none yet: they are made when they are needed' : `${present.length} in order`),
  );
}

function judgeDirectory(directory: DirectoryFacts, ownUid: number): Finding[] {
  const { path, mode, uid, error, isPrivate, isMadeAtBoot } = directory;
  if (error !== undefined) return [failure(`it cannot be looked at: ${error}`, { where: path })];
  if (mode === undefined || uid === undefined) {
    const fix = '`systemd-tmpfiles --create reeve.conf`';
    return isMadeAtBoot ? [failure('it is missing', { where: path, fix })] : [];
  }
  const findings: Finding[] = [];
  if (uid !== ownUid) {
    // Those of the units are root's, and taken from it they would be of no use to them.
    const fix =
      uid === 0
        ? 'run this as root, or set REEVE_STATE, REEVE_RUN and REEVE_CACHE'
        : `chown ${ownUid} ${path}`;
    findings.push(warning(`it belongs to user ${uid}, not ${ownUid}`, { where: path, fix }));
  } else if (!directory.writable)
    findings.push(failure('it cannot be written', { where: path, fix: 'mount it read-write' }));
  if ((mode & 0o022) !== 0) {
    findings.push(failure('others may write into it', { where: path, fix: `chmod go-w ${path}` }));
  } else if (isPrivate && (mode & 0o007) !== 0) {
    findings.push(warning('others may look into it', { where: path, fix: `chmod o-rwx ${path}` }));
  }
  return findings;
}

/** Configuration, certificates' keys, credentials and secrets: nobody else's to read. */
export function judgeSecrets(files: readonly PathFacts[], ownUid: number): Finding[] {
  const unreadable = files.filter(({ error }) => error !== undefined);
  const open = files.filter(({ mode = 0 }) => (mode & 0o077) !== 0);
  const others = files.filter(({ uid }) => uid !== undefined && uid !== ownUid && uid !== 0);
  const findings = [
    ...unreadable.map(({ path, error }) => failure(`it cannot be looked at: ${error}`, { where: path })),
    ...(open.length === 0
      ? []
      : [
          failure(`${open.length} readable by others`, {
            where: listNames(open.map(({ path }) => path)),
            fix: `chmod go-rwx${operands(open)}`,
          }),
        ]),
    ...(others.length === 0
      ? []
      : [
          warning(`${others.length} of other users`, {
            where: listNames(others.map(({ path }) => path)),
            fix: `chown ${ownUid}${operands(others)}`,
          }),
        ]),
  ];
  const count = files.filter(({ mode }) => mode !== undefined).length;
  return orOk(findings, ok(count === 0 ? 'none on disk' : `${plural(count, 'file')} for the owner alone`));
}

/** To be pasted into a shell, where they are few. */
function operands(files: readonly PathFacts[]): string {
  return files.length > 5 ? '' : files.map(({ path }) => ` ${path}`).join('');
}

/** `isTold`: that others read a token in it is another check's to tell. */
export function judgeConfigFile({ path, mode = 0 }: PathFacts, { isTold = false } = {}): Finding[] {
  if ((mode & 0o022) !== 0) {
    return [failure('others may change it', { where: path, fix: `chmod go-w ${path}` })];
  }
  const fix = `chmod o-rwx ${path}`;
  return (mode & 0o004) === 0 || isTold
    ? []
    : [warning('everybody may read it, tokens included', { where: path, fix })];
}

export function judgeLeftovers(corrupt: readonly string[]): Finding[] {
  const fix = 'look what happened (disk, power), then remove it: reeve goes on without it';
  return orOk(
    corrupt.map((path) => warning('a damaged state file was set aside', { where: path, fix })),
    ok('no state file has been set aside'),
  );
}

/** `setting`: where the configuration names it. */
export type CertificateFacts = { path: string; setting: string; validTo: Date | undefined; error?: string };

/** A key that a server would not begin with; `problem` is a sentence about the file. */
export type KeyFacts = { path: string; setting: string; certPath: string; problem: string };

export function judgeKey(key: KeyFacts | undefined): Finding[] {
  if (key === undefined) return [];
  const { path, setting, certPath, problem } = key;
  const fix = `put the key of ${certPath} there, or correct its path in ${setting}`;
  return [failure(`the key of a certificate: ${problem}`, { where: path, fix })];
}

const dayMs = 24 * 60 * 60_000;
const soonDays = 30;

export function judgeCertificates(certificates: readonly CertificateFacts[], now: Date): Finding[] {
  return certificates.map(({ path, setting, validTo, error }) => {
    if (validTo === undefined) {
      const fix = `put a certificate there, or correct its path in ${setting}`;
      return failure(`it cannot be used: ${error ?? 'no certificate'}`, { where: path, fix });
    }
    const leftDays = Math.floor((validTo.getTime() - now.getTime()) / dayMs);
    const until = validTo.toISOString().slice(0, 10);
    const fix = 'have it issued again';
    if (leftDays < 0) return failure(`it has expired on ${until}`, { where: path, fix });
    if (leftDays < soonDays)
      return warning(`it expires on ${until}, in ${leftDays} days`, { where: path, fix });
    return ok(`valid until ${until}`, { where: path });
  });
}

export type DiskFacts = { path: string; totalBytes: number; freeBytes: number };

const gibibyte = 1024 ** 3;
/** Below this share of free space, or these bytes on anything larger than a few GiB, it is tight. */
const tightShare = 0.1;
const tightBytes = gibibyte;
const largeBytes = 4 * gibibyte;
/** Below this, writes are about to fail. */
const fullShare = 0.02;

export function judgeDisks(disks: readonly DiskFacts[], format: (bytes: number) => string): Finding[] {
  const findings = disks.flatMap(({ path, totalBytes, freeBytes }): Finding[] => {
    if (totalBytes === 0) return [];
    const share = freeBytes / totalBytes;
    const what = `${format(freeBytes)} of ${format(totalBytes)} free`;
    const details = { where: path, fix: 'make room; `reeve prune` removes images that nothing refers to' };
    if (share < fullShare) return [failure(what, details)];
    const isTight = share < tightShare || (totalBytes >= largeBytes && freeBytes < tightBytes);
    return isTight ? [warning(what, details)] : [];
  });
  const [least] = disks;
  return orOk(
    findings,
    least === undefined
      ? ok('nothing to measure')
      : ok(`${format(least.freeBytes)} free at least`, { where: least.path }),
  );
}
