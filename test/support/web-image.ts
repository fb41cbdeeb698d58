// An image with the web service of programs/web-app.mjs: the project's own Node.js with the libraries that it needs.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { docker } from './engine.ts';

const repository = 'reeve-test/web-app';
const program = join(import.meta.dirname, 'programs/web-app.mjs');

/** Makes `reeve-test/web-app:<version>` for each version where it is missing; gives its references. */
export function buildWebImages(socket: string, versions: readonly string[]): string[] {
  const references = versions.map((version) => `${repository}:${version}`);
  const present = docker(socket, ['images', '--format', '{{.Repository}}:{{.Tag}}']).split('\n');
  const missing = versions.filter((version) => !present.includes(`${repository}:${version}`));
  if (missing.length === 0) return references;
  const root = join(tmpdir(), `reeve-web-image-${process.pid}`);
  try {
    fillRoot(root);
    for (const version of missing) importRoot(socket, root, version);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  return references;
}

function fillRoot(root: string): void {
  const node = realpathSync(process.execPath);
  mkdirSync(join(root, 'app'), { recursive: true });
  cpSync(node, join(root, 'app/node'));
  cpSync(program, join(root, 'app/web-app.mjs'));
  for (const library of librariesOf(node)) {
    mkdirSync(join(root, dirname(library)), { recursive: true });
    cpSync(realpathSync(library), join(root, library));
  }
}

function librariesOf(file: string): string[] {
  const listed = run('ldd', [file]);
  return [...listed.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path as string);
}

function importRoot(socket: string, root: string, version: string): void {
  const changes = [`ENV VERSION=${version}`, 'CMD ["/app/node","/app/web-app.mjs"]'];
  const options = changes.map((change) => `--change '${change}'`).join(' ');
  const client = `/usr/bin/docker -H unix://${socket} import ${options} - ${repository}:${version}`;
  run('sh', ['-c', `tar -C "${root}" -c . | ${client}`]);
}

function run(file: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(file, args, { encoding: 'utf8', timeout: 120_000 });
  if (status !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${status}:\n${stderr}`);
  return stdout;
}
