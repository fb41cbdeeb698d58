// `scripts/bootstrap` below a root, against a server that behaves as badly as networks do. What it makes of a booted machine is
// the system tests' business.
import { createHash } from 'node:crypto';
import {
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
const query = 'X-Amz-Expires=900&X-Amz-Signature=geheim%2Bgeheim';
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

type Options = { sum?: string; path?: string; address?: string };

/** Its address comes by standard input. */
async function bootstrap(
  root: string,
  { sum = sumOf(whole), path, address }: Options = {},
): Promise<ProgramEnd> {
  const { port } = server.address() as AddressInfo;
  const words = ['--url', '-', '--sha256', sum, '--root', root];
  const env = path === undefined ? {} : { PATH: path };
  const program = startProcess(join(scripts, 'bootstrap'), words, env);
  program.child.stdin.end(`${address ?? `http://127.0.0.1:${port}/agent.tar.gz?${query}`}\n`);
  const end = await program.ended;
  expect(`${end.stdout}${end.stderr}`).not.toContain('geheim');
  return end;
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

  it.each(['curl', 'wget'])('ends at once where the address is refused, without %s', async (program) => {
    const root = makeTempDir();
    answers.push(status(403));
    const end = await bootstrap(root, { path: pathWithout(program) });
    expect([end.status, requests, readdirSync(root)]).toEqual([69, 1, []]);
    expect(end.stderr).toMatch(
      /^bootstrap: cannot fetch http:\/\/127.0.0.1:\d+\/agent.tar.gz: 403: the address lets nobody in, or no longer: presign another one\n$/,
    );
  });

  it('gives up at last', async () => {
    answers.push(...Array.from({ length: 9 }, () => status(500)));
    const end = await bootstrap(makeTempDir());
    expect([end.status, end.stderr, requests]).toEqual([
      69,
      expect.stringContaining(': 500, time and again'),
      6,
    ]);
  });

  it.each([
    [
      'another one',
      (bytes: Buffer) => Buffer.concat([bytes, Buffer.from('x')]),
      undefined,
      /its sha256 is [0-9a-f]{64}, and/,
    ],
    ['cut', (bytes: Buffer) => bytes.subarray(0, bytes.length - 5_000), 'own', /it is no package: nothing/],
    ['no archive', () => Buffer.from('<html>'), 'own', /it is no package: nothing/],
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
    expect(readdirSync('/var/tmp').filter((name) => name.startsWith('reeve-bootstrap-'))).toEqual([]);
  });
});
