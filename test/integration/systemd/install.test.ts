import {
  appendFileSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ProgramEnd, startProcess } from '../../support/programs.ts';
import { makeTempDir } from '../../support/temp.ts';

const checkout = resolve(import.meta.dirname, '../../..');
const made = realpathSync(mkdtempSync(join(tmpdir(), 'reeve-tree-')));
/** What scripts/package packs. */
const tree = join(made, 'tree');
const { version } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { version: string };

beforeAll(async () => {
  expect(await startProcess(join(checkout, 'scripts/assemble'), [tree]).ended).toMatchObject({ status: 0 });
});
afterAll(() => rmSync(made, { recursive: true, force: true }));

/** No program of the machine but Debian's own: no npm, no other Node.js. Compiled code goes where that of an installation does. */
const plain = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', NODE_COMPILE_CACHE: '' };

function run(script: string, ...args: string[]): Promise<ProgramEnd> {
  return startProcess(script, args, plain).ended;
}

/** Another build of the same version. Hard links, since nobody changes the files. */
function anotherTree(mark: string): string {
  const other = join(makeTempDir(), 'tree');
  cpSync(tree, other, { recursive: true, filter: (path) => !path.endsWith('/runtime/node') });
  linkSync(join(tree, 'runtime/node'), join(other, 'runtime/node'));
  appendFileSync(join(other, 'CHANGELOG.md'), mark);
  return other;
}

async function install(from: string, root: string): Promise<string> {
  const end = await run(join(from, 'scripts/install'), '--root', root);
  expect(end).toMatchObject({ status: 0, stderr: '' });
  return end.stdout;
}

/** Every file with its content's size and time, every link with its target; the cache is nobody's promise. */
function listTree(root: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .map((entry) => ({ entry, path: join(entry.parentPath, entry.name) }))
    .filter(({ entry, path }) => !entry.isDirectory() && !path.startsWith(join(root, 'var/cache')))
    .map(({ entry, path }) => {
      const name = path.slice(root.length);
      if (entry.isSymbolicLink()) return `${name} -> ${readlinkSync(path)}`;
      const { size, mtimeMs } = statSync(path);
      return `${name} ${size} ${name.startsWith('/run/') ? '' : mtimeMs}`;
    })
    .sort();
}

const config = `cluster:
  nodeId: web-1
  store: file:///srv/store
  intervals: { tick: 20s }
`;

function writeConfig(root: string, text: string = config): void {
  mkdirSync(join(root, 'etc/reeve'), { recursive: true });
  writeFileSync(join(root, 'etc/reeve/reeve.yaml'), text, { mode: 0o600 });
}

describe('an assembled tree', () => {
  it('has what runs on a node, and belongs to nobody else', () => {
    expect(readdirSync(tree).filter((name) => name !== 'README.md')).toEqual(
      [
        'CHANGELOG.md',
        'LICENSE',
        'bin',
        'dist',
        'docs',
        'package.json',
        'runtime',
        'scripts',
        'systemd',
      ].filter((name) => existsSync(join(checkout, name)) || ['dist', 'runtime'].includes(name)),
    );
    const loose = readdirSync(tree, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isSymbolicLink())
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => (statSync(path).mode & 0o022) !== 0 || statSync(path).uid !== process.getuid?.());
    expect(loose).toEqual([]);
  });
});

describe('scripts/install', () => {
  it('puts release, command and units into place without npm, network or another Node.js', async () => {
    const root = makeTempDir();
    expect(await install(tree, root)).toBe(
      `reeve ${version} is installed below ${root}\nnext: \`reeve init\` makes this machine a node\n`,
    );
    expect(readlinkSync(join(root, 'opt/reeve/current'))).toBe(`releases/${version}`);
    expect(readlinkSync(join(root, 'usr/local/bin/reeve'))).toBe('/opt/reeve/current/bin/reeve');
    const shipped = readdirSync(join(checkout, 'systemd'));
    const units = shipped.filter((name) => !/\.(conf|cfg)$/.test(name));
    expect(readdirSync(join(root, 'usr/lib/systemd/system')).sort()).toEqual(units.sort());
    expect(readdirSync(join(root, 'usr/lib/tmpfiles.d'))).toEqual(['reeve.conf']);
    expect(readlinkSync(join(root, 'etc/systemd/system/multi-user.target.wants/reeve.target'))).toBe(
      '/usr/lib/systemd/system/reeve.target',
    );
    const reeve = join(root, 'opt/reeve/current/bin/reeve');
    const env = { ...plain, REEVE_CACHE: join(root, 'var/cache/reeve') };
    expect((await startProcess(reeve, ['--version'], env).ended).stdout).toBe(`${version}\n`);
    // Warmed: what the timers start has been compiled.
    expect(readdirSync(join(root, 'var/cache/reeve'))).toEqual(['node']);
    expect(readFileSync(join(root, 'run/reeve/locks/install.lock'), 'utf8')).toBe('');
  });

  it('changes nothing when it is done again', async () => {
    const root = makeTempDir();
    await install(tree, root);
    const before = listTree(root);
    await install(tree, root);
    expect(listTree(root)).toEqual(before);
    // From the installed release itself, too: how an operator goes back to the one before.
    await install(join(root, 'opt/reeve/current'), root);
    expect(listTree(root)).toEqual(before);
  });

  it('keeps the release before, removes older ones, and never changes one that is there', async () => {
    const root = makeTempDir();
    const releases = join(root, 'opt/reeve/releases');
    await install(tree, root);
    const first = listTree(join(releases, version));
    await install(anotherTree('2'), root);
    const second = readlinkSync(join(root, 'opt/reeve/current'));
    expect(second).toMatch(new RegExp(`^releases/${version.replaceAll('.', '\\.')}\\+[0-9a-f]{8}$`));
    expect(readlinkSync(join(root, 'opt/reeve/previous'))).toBe(`releases/${version}`);
    expect(listTree(join(releases, version))).toEqual(first);
    // The runtime is the same file: a release costs little.
    const inodeOf = (path: string): number => statSync(join(root, 'opt/reeve', path, 'runtime/node')).ino;
    expect(inodeOf('current')).toBe(inodeOf('previous'));
    await install(anotherTree('3'), root);
    expect(readlinkSync(join(root, 'opt/reeve/previous'))).toBe(second);
    expect(readdirSync(releases)).toHaveLength(2);
    // And back: the release before installs itself.
    await install(join(root, 'opt/reeve/previous'), root);
    expect(readlinkSync(join(root, 'opt/reeve/current'))).toBe(second);
  });

  it('removes a unit that the new release no longer has, and leaves an operator’s own settings', async () => {
    const root = makeTempDir();
    await install(tree, root);
    const old = join(root, 'usr/lib/systemd/system/reeve-gone.timer');
    writeFileSync(old, '[Timer]\n');
    const override = join(root, 'etc/systemd/system/reeve-prune.timer.d/override.conf');
    mkdirSync(join(override, '..'), { recursive: true });
    writeFileSync(override, '[Timer]\n');
    const enabled = join(root, 'etc/systemd/system/multi-user.target.wants/reeve.target');
    rmSync(enabled);
    await install(tree, root);
    expect(existsSync(old)).toBe(false);
    expect(existsSync(override)).toBe(true);
    // Switched off by somebody: an upgrade does not switch it on again.
    expect(existsSync(enabled)).toBe(false);
  });

  it('renders the drop-ins of a configuration that is there, and switches on its roles', async () => {
    const root = makeTempDir();
    writeConfig(root);
    const lines = (await install(tree, root)).split('\n');
    const machine = join(root, 'etc/systemd/system');
    expect(lines).toEqual([
      `wrote ${machine}/reeve-reconcile.timer.d/50-reeve.conf`,
      `wrote ${machine}/reeve-reconcile.service.d/50-reeve.conf`,
      `wrote ${machine}/reeve-heartbeat.service.d/50-reeve.conf`,
      'switched on reeve-app.target',
      `reeve ${version} is installed below ${root}`,
      '',
    ]);
    const dropIn = readFileSync(join(machine, 'reeve-reconcile.timer.d/50-reeve.conf'), 'utf8');
    expect(dropIn).toContain('from /etc/reeve/reeve.yaml: change it there');
    expect(dropIn).toContain('\nOnUnitInactiveSec=20s\n');
    const sandbox = readFileSync(join(machine, 'reeve-reconcile.service.d/50-reeve.conf'), 'utf8');
    expect(sandbox.split('\n').slice(3)).toEqual([
      '[Service]',
      '# cluster.store',
      'ReadWritePaths=-/srv/store',
      '',
    ]);
    expect(readlinkSync(join(machine, 'reeve.target.wants/reeve-app.target'))).toBe(
      '/usr/lib/systemd/system/reeve-app.target',
    );
    writeConfig(root, 'cluster: { nodeId: web-1, role: edge, store: "file:///var/lib/reeve/store" }\n');
    await install(tree, root);
    expect(readdirSync(machine).sort()).toEqual([
      'caddy.service.d',
      'multi-user.target.wants',
      'reeve-edge.path.d',
      'reeve-edge.target.wants',
      'reeve.target.wants',
    ]);
    expect(readdirSync(join(machine, 'reeve.target.wants'))).toEqual(['reeve-edge.target']);
    expect(readdirSync(join(machine, 'reeve-edge.target.wants')).sort()).toEqual([
      'reeve-balancer.service',
      'reeve-balancer.socket',
    ]);
  });

  it('is done and tells, with exit 1, when the configuration is wrong', async () => {
    const root = makeTempDir();
    writeConfig(root, 'clustr: {}\n');
    const end = await run(join(tree, 'scripts/install'), '--root', root);
    expect(end.status).toBe(1);
    expect(end.stderr).toContain('unknown key "clustr"');
    expect(readlinkSync(join(root, 'opt/reeve/current'))).toBe(`releases/${version}`);
  });

  it('changes nothing when the new release does not start', async () => {
    const root = makeTempDir();
    await install(tree, root);
    const before = listTree(root);
    const broken = anotherTree('broken');
    writeFileSync(join(broken, 'dist/main.js'), 'process.exit(1);\n');
    const end = await run(join(broken, 'scripts/install'), '--root', root);
    expect(end).toMatchObject({
      status: 1,
      stderr: 'install: the new release does not start: nothing is changed\n',
    });
    expect(listTree(root)).toEqual(before);
  });

  it('does not go on while another one holds the lock, and names it', async () => {
    const root = makeTempDir();
    await install(tree, root);
    const lock = join(root, 'run/reeve/locks/install.lock');
    writeFileSync(lock, '{"pid":1,"command":"scripts/install"}\n');
    const holder = startProcess('flock', [lock, 'sh', '-c', 'echo held; read -r line']);
    await holder.waitFor('held');
    const [installed, uninstalled] = await Promise.all([
      run(join(tree, 'scripts/install'), '--root', root),
      run(join(tree, 'scripts/uninstall'), '--root', root),
    ]);
    holder.tell('');
    await holder.ended;
    expect(installed).toMatchObject({
      status: 75,
      stderr: 'install: another is under way: {"pid":1,"command":"scripts/install"}\n',
    });
    expect(uninstalled.status).toBe(75);
  });

  it('replaces nothing at /usr/local/bin/reeve that is not its own', async () => {
    const root = makeTempDir();
    mkdirSync(join(root, 'usr/local/bin'), { recursive: true });
    writeFileSync(join(root, 'usr/local/bin/reeve'), 'mine');
    const end = await run(join(tree, 'scripts/install'), '--root', root);
    expect(end.status).toBe(78);
    expect(readdirSync(root)).toEqual(['usr']);
  });

  it.each([['--rot'], ['--root'], ['--root', '/nowhere/at/all']])(
    'refuses %s %s as usage',
    async (...args) => {
      expect((await run(join(tree, 'scripts/install'), ...args)).status).toBe(64);
    },
  );
});
