// `scripts/bootstrap` below a root, against a server that behaves as badly as networks do. What it makes of a booted machine is
// the system tests' business.
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type ProgramEnd, startProcess } from '../../support/programs.ts';
import { makeTempDir } from '../../support/temp.ts';

const scripts = resolve(import.meta.dirname, '../../../scripts');
const directory = mkdtempSync(join(tmpdir(), 'reeve-bootstrap-test-'));
// What an address may have that a program could take for a pattern.
const query = 'X-Amz-Expires=900&names[1-3]=*&X-Amz-Signature=geheim%2Bgeheim';
type Answer = (response: ServerResponse, whole: Buffer) => void;

let server: Server;
let whole: Buffer;
let requests = 0;
let seenInArguments = 0;
/** For the next requests; then the package. */
const answers: Answer[] = [];

const give: Answer = (response, body) => response.end(body);
const status =
  (code: number): Answer =>
  (response) =>
    response.writeHead(code).end(`<Error>${code}</Error>`);
const reset: Answer = (response) => response.socket?.resetAndDestroy();
const breakOff: Answer = (response, body) => {
  response.writeHead(200, { 'content-length': body.length });
  response.write(body.subarray(0, 100_000), () => response.destroy());
};

beforeAll(async () => {
  const made = await startProcess(join(scripts, 'package'), [directory]).ended;
  expect(made).toMatchObject({ status: 0 });
  whole = readFileSync(made.stdout.trim());
  server = createServer((request, response) => {
    requests += 1;
    if (someArgumentHas('geheim')) seenInArguments += 1;
    if (request.url !== `/agent.tar.gz?${query}`) response.writeHead(403).end();
    else (answers.shift() ?? give)(response, whole);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(directory, { recursive: true });
});
afterEach(() => {
  requests = 0;
  seenInArguments = 0;
  answers.length = 0;
});

function someArgumentHas(text: string): boolean {
  return globSync('/proc/[0-9]*/cmdline').some((file) => {
    try {
      return readFileSync(file, 'utf8').includes(text);
    } catch {
      return false;
    }
  });
}

const sumOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

type Options = { sum?: string; path?: string; address?: string; home?: string };

/** Its address comes by standard input. */
async function bootstrap(
  root: string,
  { sum = sumOf(whole), path, address, home }: Options = {},
): Promise<ProgramEnd> {
  const words = ['--url', '-', '--sha256', sum, '--root', root];
  const env = { ...(path && { PATH: path }), ...(home && { HOME: home }) };
  const program = startProcess(join(scripts, 'bootstrap'), words, env);
  program.child.stdin.end(`${address ?? addressOf()}\n`);
  const end = await program.ended;
  expect(`${end.stdout}${end.stderr}`).not.toContain('geheim');
  return end;
}

const addressOf = (user = ''): string =>
  `http://${user}127.0.0.1:${(server.address() as AddressInfo).port}/agent.tar.gz?${query}`;

/** What installing another release by hand does: the same package with one file changed. */
async function upgrade(root: string): Promise<void> {
  const tree = makeTempDir();
  writeFileSync(join(tree, 'package.tar.gz'), whole);
  await startProcess('tar', ['-xzf', join(tree, 'package.tar.gz'), '-C', tree]).ended;
  const [release = ''] = globSync(join(tree, 'reeve-*'));
  appendFileSync(join(release, 'README.md'), 'Changed.\n');
  const end = await startProcess(join(release, 'scripts/install'), ['--root', root]).ended;
  expect(end).toMatchObject({ status: 0 });
}

/** Everything but one of the two programs. */
function pathWithout(program: string): string {
  const links = makeTempDir();
  const made = new Set([program]);
  for (const from of ['/usr/bin', '/bin', '/usr/sbin', '/sbin']) {
    for (const name of readdirSync(from)) {
      if (made.has(name)) continue;
      made.add(name);
      symlinkSync(join(from, name), join(links, name));
    }
  }
  return links;
}

const noPackage = /it is no package: nothing is changed; make one with scripts\/package\n$/;

describe('scripts/bootstrap', () => {
  it('installs the package it fetches, and shows nobody the address it was given (L7, L170)', async () => {
    const root = makeTempDir();
    const end = await bootstrap(root);
    expect(end).toMatchObject({ status: 0, stderr: '' });
    expect(readlinkSync(join(root, 'opt/launch-pad/agent'))).toBe('/opt/reeve/current/scripts/agent');
    for (const name of ['scripts/agent', 'scripts/bootstrap', 'bin/reeve']) {
      expect(existsSync(join(root, 'opt/reeve/current', name))).toBe(true);
    }
    expect([requests, seenInArguments]).toEqual([1, 0]);

    // Again, when the address is no longer good: there is nothing to fetch.
    answers.push(status(403));
    const again = await bootstrap(root);
    expect([again.status, again.stdout, requests]).toEqual([0, 'this package is installed already\n', 1]);

    const removed = await startProcess(join(scripts, 'uninstall'), ['--root', root]).ended;
    expect([removed.status, existsSync(join(root, 'opt/launch-pad'))]).toEqual([0, false]);
  });

  it('tries again what networks do, with curl and without it', async () => {
    answers.push(status(503), reset, breakOff);
    expect(await bootstrap(makeTempDir())).toMatchObject({ status: 0, stderr: '' });
    expect(requests).toBe(4);
    answers.push(status(503), reset, breakOff);
    expect(await bootstrap(makeTempDir(), { path: pathWithout('curl') })).toMatchObject({
      status: 0,
      stderr: '',
    });
    expect([requests, seenInArguments]).toEqual([8, 0]);
  });

  it.each([
    ['curl', 400, 'the address lets nobody in, or no longer: presign another one'],
    ['curl', 403, 'the address lets nobody in, or no longer: presign another one'],
    ['wget', 403, 'the address lets nobody in, or no longer: presign another one'],
    ['wget', 404, 'there is no package there: look where it has been put'],
    ['wget', 301, 'it is somewhere else: presign with the region of its bucket'],
  ])('without %s ends at once with %i, and says what to do', async (program, code, message) => {
    const root = makeTempDir();
    answers.push(status(code));
    const end = await bootstrap(root, { path: pathWithout(program), address: addressOf('me:geheim@') });
    expect([end.status, requests, readdirSync(root)]).toEqual([69, 1, []]);
    const shown = addressOf().replace(/\?.*/, '');
    expect(end.stderr).toBe(`bootstrap: cannot fetch ${shown}: ${code}: ${message}\n`);
  });

  it.each(['curl', 'wget'])('goes by nobody’s own settings, without %s', async (program) => {
    const home = makeTempDir();
    writeFileSync(join(home, '.curlrc'), 'proxy = http://127.0.0.1:9\n');
    writeFileSync(join(home, '.wgetrc'), 'use_proxy = on\nhttp_proxy = http://127.0.0.1:9\n');
    const end = await bootstrap(makeTempDir(), { home, path: pathWithout(program) });
    expect([end.status, end.stderr, requests]).toEqual([0, '', 1]);
  });

  it('is not misled by an upgrade that came in between', async () => {
    const root = makeTempDir();
    await bootstrap(root);
    const before = readlinkSync(join(root, 'opt/reeve/current'));
    await upgrade(root);
    expect(readlinkSync(join(root, 'opt/reeve/current'))).not.toBe(before);
    expect([(await bootstrap(root)).status, requests]).toEqual([0, 2]);
    expect(readlinkSync(join(root, 'opt/reeve/current'))).toBe(before);
  });

  it('does nothing more where the install fails, and all of it the next time', async () => {
    const root = makeTempDir();
    const lock = join(root, 'run/reeve/locks/install.lock');
    mkdirSync(lock, { recursive: true });
    const failed = await bootstrap(root);
    expect([failed.status, existsSync(join(root, 'opt/launch-pad'))]).toEqual([expect.any(Number), false]);
    expect(failed.status).not.toBe(0);
    expect(failed.stderr).toMatch(
      /\nbootstrap: the package is not installed, for the reason above: set that right, and do this again\n$/,
    );
    rmSync(lock, { recursive: true });
    expect(await bootstrap(root)).toMatchObject({ status: 0, stderr: '' });
  });

  it('puts units in place that the first time could not', async () => {
    const root = makeTempDir();
    const config = join(root, 'etc/reeve/reeve.yaml');
    mkdirSync(join(root, 'etc/reeve'), { recursive: true });
    writeFileSync(config, 'cluster: { nodeId: 7 ');
    const failed = await bootstrap(root);
    expect([failed.status, failed.stderr]).toEqual([
      78,
      expect.stringContaining(`not as ${config} wants them`),
    ]);
    writeFileSync(config, 'cluster: { nodeId: web-1, store: file:///srv/store }');
    expect(await bootstrap(root)).toMatchObject({ status: 0, stderr: '' });
    expect([requests, globSync(join(root, 'etc/systemd/system/reeve-*.d/*')).length > 0]).toEqual([1, true]);
  });

  it('gives up at last', async () => {
    answers.push(...Array.from({ length: 5 }, () => status(500)), reset);
    const end = await bootstrap(makeTempDir());
    expect([end.status, end.stderr, requests]).toEqual([
      69,
      expect.stringMatching(
        /^bootstrap: .*: no whole answer \(.*reset.*\), time and again: when it can be reached, do this again\n$/,
      ),
      6,
    ]);
  });

  it.each([
    [
      'another one',
      (bytes: Buffer) => Buffer.concat([bytes, Buffer.from('x')]),
      undefined,
      /its sha256 is [0-9a-f]{64}, and .* wanted: nothing is changed; put the right one there, or name its sum\n$/,
    ],
    ['cut', (bytes: Buffer) => bytes.subarray(0, bytes.length / 2), 'own', noPackage],
    ['no archive', () => Buffer.from('<html>'), 'own', noPackage],
  ] as const)('refuses a package that is %s, and installs nothing', async (_title, damage, sum, message) => {
    const root = makeTempDir();
    const damaged = damage(whole);
    answers.push((response) => response.end(damaged));
    const end = await bootstrap(root, sum === undefined ? {} : { sum: sumOf(damaged) });
    expect([end.status, end.stderr, readdirSync(root)]).toEqual([65, expect.stringMatching(message), []]);
  });

  it('leaves what stands at launch-pad’s path and is not ours', async () => {
    const root = makeTempDir();
    mkdirSync(join(root, 'opt/launch-pad'), { recursive: true });
    writeFileSync(join(root, 'opt/launch-pad/agent'), 'binary');
    const end = await bootstrap(root);
    expect([end.status, end.stdout]).toEqual([0, expect.stringContaining('left ')]);
    expect(readFileSync(join(root, 'opt/launch-pad/agent'), 'utf8')).toBe('binary');
  });

  it.each([
    ['ftp://x/y', 'cannot use --url: it begins with neither https:// nor http://'],
    ['http://x/"y', 'cannot use --url: it has characters that no address has'],
    ['http://x/\\y', 'cannot use --url: it has characters that no address has'],
    ['http://x/y z', 'cannot use --url: it has characters that no address has'],
  ])('refuses the address %s', async (address, message) => {
    expect(await bootstrap(makeTempDir(), { address })).toMatchObject({
      status: 64,
      stderr: `bootstrap: ${message}\n`,
    });
  });

  it('leaves nothing of its work behind', () => {
    expect(readdirSync('/var/tmp').filter((name) => name.startsWith('reeve-bootstrap'))).toEqual([]);
  });
});
