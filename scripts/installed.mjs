// Tells by its exit status whether node_modules is what package-lock.json describes. Runs under any Node from 20 on,
// as it is asked before the project's own is there.
import { existsSync, readFileSync } from 'node:fs';

const root = new URL('..', import.meta.url);
process.exitCode = isInstalled() ? 0 : 1;

function isInstalled() {
  const installed = readPackages('node_modules/.package-lock.json');
  if (installed === undefined) return false;
  const { '': _, ...wanted } = readPackages('package-lock.json');
  const isSame = Object.entries(wanted).every(([path, entry]) => {
    const found = installed[path];
    if (found === undefined) return entry.optional === true && !isForHere(entry);
    return found.version === entry.version && existsSync(new URL(`${path}/package.json`, root));
  });
  return isSame && Object.keys(installed).every((path) => wanted[path] !== undefined);
}

function readPackages(file) {
  const url = new URL(file, root);
  return existsSync(url) ? JSON.parse(readFileSync(url, 'utf8')).packages : undefined;
}

/** What an optional package for another machine would bring along names no machine itself. */
function isForHere({ os = [], cpu = [], libc = ['glibc'] }) {
  return os.includes(process.platform) && cpu.includes(process.arch) && libc.includes('glibc');
}
