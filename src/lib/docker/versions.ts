// Versions of the Engine API: what we speak, and how two compare.

/** Docker 20.10; podman's compatible socket speaks it, too. */
export const oldestApiVersion = '1.41';

/** The newest whose answers we know (Docker 29). */
export const newestApiVersion = '1.52';

/** `1.41` and the like; engines send nothing else. */
export function isApiVersion(text: string): boolean {
  return /^\d{1,3}\.\d{1,4}$/.test(text);
}

/** Below zero where `left` is older. Both must be versions. */
export function compareApiVersions(left: string, right: string): number {
  const [leftMajor = 0, leftMinor = 0] = left.split('.').map(Number);
  const [rightMajor = 0, rightMinor = 0] = right.split('.').map(Number);
  return leftMajor - rightMajor || leftMinor - rightMinor;
}

/** The version both sides speak, if ours and theirs overlap from above. */
export function commonApiVersion(theirs: string): string {
  return compareApiVersions(theirs, newestApiVersion) < 0 ? theirs : newestApiVersion;
}
