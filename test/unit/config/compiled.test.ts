import { execFile } from 'node:child_process';
import { chmod, chown, mkdir, readdir, readFile, stat, symlink, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { checksum } from '../../../src/lib/config/compiled.ts';
import { loadConfig } from '../../../src/lib/config/load.ts';
import { type ConfigHome, createConfigHome } from '../../support/config-home.ts';

const run = promisify(execFile);

/** Loads in a process of its own, and answers which packages that took. */
async function loadedPackages(home: ConfigHome): Promise<{ nodeId: string; packages: string[] }> {
  const script = `
    import { registerHooks } from 'node:module';
    const urls = [];
    registerHooks({ load: (url, context, next) => { urls.push(url); return next(url, context); } });
    const { loadConfig } = await import(${JSON.stringify(new URL('../../../src/lib/config/load.ts', import.meta.url).href)});
    const config = await loadConfig(${JSON.stringify(home.paths)}, {});
    const names = urls.map((url) => /node_modules\\/([^/]+)/.exec(url)?.[1]).filter(Boolean);
    console.log(JSON.stringify({ nodeId: config.cluster.nodeId, packages: [...new Set(names)].sort() }));
  `;
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', script]);
  return JSON.parse(stdout);
}

async function cacheFiles(home: ConfigHome): Promise<string[]> {
  return (await readdir(home.paths.cacheDir)).map((name) => join(home.paths.cacheDir, name));
}

async function onlyFile(home: ConfigHome): Promise<string> {
  const files = await cacheFiles(home);
  expect(files).toHaveLength(1);
  return files[0] as string;
}

/** A cache that says something else than the files, so that believing it can be seen. */
async function plant(home: ConfigHome): Promise<string> {
  await home.load();
  const file = await onlyFile(home);
  const [header, body] = (await readFile(file, 'utf8')).split('\n') as [string, string];
  const planted = body.replace('"web-1"', '"planted"');
  await writeFile(file, `${JSON.stringify({ ...JSON.parse(header), sum: checksum(planted) })}\n${planted}`);
  return file;
}

async function nodeId(home: ConfigHome): Promise<string | undefined> {
  return (await home.load()).cluster?.nodeId;
}

const yaml = 'cluster: { nodeId: web-1 }\ncommands: { file: agenda-node.yaml }\n';

async function createHome(): Promise<ConfigHome> {
  const home = await createConfigHome(yaml);
  await home.write('agenda-node.yaml', 'machine_id: 1\ntoken: tok-3f9c\n');
  return home;
}

describe('the compiled form', () => {
  it('saves the second run from loading yaml and zod', async () => {
    const home = await createHome();
    expect(await loadedPackages(home)).toEqual({ nodeId: 'web-1', packages: ['yaml', 'zod'] });
    expect(await loadedPackages(home)).toEqual({ nodeId: 'web-1', packages: [] });
  });

  it('is the same configuration, warnings included', async () => {
    const home = await createHome();
    const first = await home.load();
    expect(first.warnings).toEqual([
      'commands.central_base_url is empty: no heartbeats are sent to that control plane',
    ]);
    expect(await home.load()).toEqual(first);
  });

  it('can be read by nobody else, as it may hold tokens', async () => {
    const home = await createHome();
    await home.load();
    const { mode } = await stat(await onlyFile(home));
    expect(mode & 0o777).toBe(0o600);
  });

  it('is believed while it is whole and ours', async () => {
    const home = await createHome();
    await plant(home);
    expect(await nodeId(home)).toBe('planted');
  });

  it.each([
    ['others could have written it', (file: string) => chmod(file, 0o620)],
    ['others can read it', (file: string) => chmod(file, 0o644)],
    [
      'it is a symbolic link',
      async (file: string) => {
        const text = await readFile(file);
        await unlink(file);
        await writeFile(`${file}.target`, text, { mode: 0o600 });
        await symlink(`${file}.target`, file);
      },
    ],
    ['it is cut', async (file: string) => writeFile(file, (await readFile(file, 'utf8')).slice(0, -9))],
    ['it is empty', (file: string) => writeFile(file, '')],
    ['it is NULs', async (file: string) => writeFile(file, Buffer.alloc((await stat(file)).size))],
    [
      'a byte of it has changed',
      async (file: string) => writeFile(file, (await readFile(file, 'utf8')).replace('planted', 'plantee')),
    ],
  ])('is ignored when %s', async (_title, spoil) => {
    const home = await createHome();
    await spoil(await plant(home));
    expect(await nodeId(home)).toBe('web-1');
  });

  it.skipIf(process.geteuid?.() !== 0)('is ignored when it belongs to somebody else', async () => {
    const home = await createHome();
    await chown(await plant(home), 1, 1);
    expect(await nodeId(home)).toBe('web-1');
  });

  it('is made anew when reeve.yaml, a file it names, or a mode changes', async () => {
    const home = await createHome();
    await home.load();
    await home.write('reeve.yaml', yaml.replace('web-1', 'web-2'));
    expect(await nodeId(home)).toBe('web-2');
    await home.write('agenda-node.yaml', 'machine_id: 2\ntoken: t\n');
    expect((await home.load()).commands?.machineId).toBe(2);
    await chmod(join(home.root, 'agenda-node.yaml'), 0o644);
    expect((await home.load()).warnings).toHaveLength(2);
    await unlink(join(home.root, 'agenda-node.yaml'));
    await expect(home.load()).rejects.toMatchObject({ exitCode: 78 });
  });

  it("is made anew when reeve.yaml comes to a machine that only had a seed system's file", async () => {
    const home = await createConfigHome();
    const overrides = {
      AGENDA_NODE_CONFIG: await home.write('agenda-node.yaml', 'machine_id: 1\ntoken: t\n'),
    };
    expect((await home.load(overrides)).cluster).toBeUndefined();
    await home.write('reeve.yaml', 'cluster: { nodeId: web-1 }\n');
    expect((await home.load(overrides)).cluster?.nodeId).toBe('web-1');
    await unlink(join(home.root, 'reeve.yaml'));
    expect((await home.load(overrides)).cluster).toBeUndefined();
  });

  it('depends on the environment and on the version of reeve', async () => {
    const home = await createHome();
    await plant(home);
    expect((await home.load({ LAUNCHPAD_ONCE: '1' })).cluster?.nodeId).toBe('web-1');
    expect((await loadConfig(home.paths, {}, { version: '9.9.9' })).cluster?.nodeId).toBe('web-1');
  });

  it('is not kept for a configuration that is refused', async () => {
    const home = await createConfigHome('clustre: {}\n');
    await expect(home.load()).rejects.toThrow('unknown key');
    await expect(readdir(home.paths.cacheDir)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('is done without where it cannot be written', async () => {
    const home = await createHome();
    await home.write('cache', 'a file where the directory should be');
    expect(await nodeId(home)).toBe('web-1');
    expect(await nodeId(home)).toBe('web-1');
  });

  it('leaves no more than a few behind, and only removes its own', async () => {
    const home = await createHome();
    await mkdir(home.paths.cacheDir);
    await home.write('cache/config-notes.json', '{}');
    for (let poll = 1; poll <= 12; poll += 1) await home.load({ LAUNCHPAD_POLL_MS: `${poll}000` });
    const names = (await readdir(home.paths.cacheDir)).toSorted();
    expect(names).toHaveLength(9);
    expect(names).toContain('config-notes.json');
  });
});
