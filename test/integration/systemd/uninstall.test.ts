// What goes with reeve, or with a role, and what stays: `scripts/uninstall`, and drop-ins beside others' own.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ProgramEnd, startProcess } from '../../support/programs.ts';
import { makeTempDir } from '../../support/temp.ts';

const checkout = resolve(import.meta.dirname, '../../..');
const made = realpathSync(mkdtempSync(join(tmpdir(), 'reeve-tree-')));
const tree = join(made, 'tree');

beforeAll(async () => {
  expect(await startProcess(join(checkout, 'scripts/assemble'), [tree]).ended).toMatchObject({ status: 0 });
});
afterAll(() => rmSync(made, { recursive: true, force: true }));

function run(script: string, ...args: string[]): Promise<ProgramEnd> {
  return startProcess(script, args).ended;
}

async function install(root: string): Promise<string> {
  const end = await run(join(tree, 'scripts/install'), '--root', root);
  expect(end).toMatchObject({ status: 0, stderr: '' });
  return end.stdout;
}

/** Files and links; the cache is nobody's promise. */
function listFiles(root: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
    .filter((path) => !path.startsWith('/var/cache'))
    .sort();
}

const config = 'cluster: { nodeId: web-1, store: "file:///var/lib/reeve/store", intervals: { tick: 20s } }\n';
const box = 'cluster: { nodeId: web-1, role: [app, edge], store: "file:///var/lib/reeve/store" }\n';

function writeConfig(root: string, text: string): void {
  mkdirSync(join(root, 'etc/reeve'), { recursive: true });
  writeFileSync(join(root, 'etc/reeve/reeve.yaml'), text, { mode: 0o600 });
}

describe('a role that goes', () => {
  it('takes Caddy’s drop-in away with the role, and leaves what else is there', async () => {
    const root = makeTempDir();
    const dropIns = join(root, 'etc/systemd/system/caddy.service.d');
    mkdirSync(dropIns, { recursive: true });
    writeFileSync(join(dropIns, 'override.conf'), '[Service]\n');
    writeConfig(root, box);
    await install(root);
    expect(readdirSync(dropIns).sort()).toEqual(['50-reeve.conf', 'override.conf']);
    writeConfig(root, config);
    expect(await install(root)).toContain(`removed ${dropIns}/50-reeve.conf\n`);
    expect(readdirSync(dropIns)).toEqual(['override.conf']);
  });
});

describe('scripts/uninstall', () => {
  it('removes all but the configuration, the state and settings of the operator', async () => {
    const root = makeTempDir();
    writeConfig(root, config);
    await install(root);
    writeFileSync(join(root, 'var/lib/reeve/published.json'), '{}');
    writeFileSync(join(root, 'etc/systemd/system/reeve-reconcile.timer.d/mine.conf'), '[Timer]\n');
    const end = await run(join(root, 'opt/reeve/current/scripts/uninstall'), '--root', root);
    expect(end).toMatchObject({ status: 0, stderr: '' });
    expect(end.stdout).toContain('the containers it has started go on running');
    expect(listFiles(root)).toEqual([
      '/etc/reeve/reeve.yaml',
      '/etc/systemd/system/reeve-reconcile.timer.d/mine.conf',
      '/var/lib/reeve/published.json',
    ]);
    expect(existsSync(join(root, 'opt/reeve'))).toBe(false);
    expect(existsSync(join(root, 'var/cache/reeve'))).toBe(false);
    // And what stayed is what an install goes on with.
    expect(await install(root)).toContain('switched on reeve-app.target');
  });

  it('gives Caddy its own settings back, and leaves those that somebody else made', async () => {
    const root = makeTempDir();
    writeConfig(root, box);
    await install(root);
    const dropIns = join(root, 'etc/systemd/system/caddy.service.d');
    writeFileSync(join(dropIns, 'mine.conf'), '[Service]\n');
    const end = await run(join(tree, 'scripts/uninstall'), '--root', root, '--purge', '--yes');
    expect(end).toMatchObject({ status: 0, stderr: '' });
    expect(end.stdout).toContain('Caddy is left as it is: at its next start it has its Caddyfile again');
    expect(listFiles(root)).toEqual(['/etc/systemd/system/caddy.service.d/mine.conf']);
  });

  it('removes configuration and state only when it is told so twice', async () => {
    const root = makeTempDir();
    writeConfig(root, config);
    await install(root);
    mkdirSync(join(root, 'var/backups/reeve'), { recursive: true });
    writeFileSync(join(root, 'var/backups/reeve/shop-db'), 'x');
    const asked = await run(join(tree, 'scripts/uninstall'), '--root', root, '--purge');
    expect(asked.status).toBe(64);
    expect(existsSync(join(root, 'opt/reeve/current'))).toBe(true);
    const end = await run(join(tree, 'scripts/uninstall'), '--root', root, '--purge', '--yes');
    expect(end.status).toBe(0);
    expect(listFiles(root)).toEqual(['/var/backups/reeve/shop-db']);
  });
});
