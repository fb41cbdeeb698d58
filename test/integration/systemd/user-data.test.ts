// What `scripts/bootstrap --user-data` prints, and what it refuses to.
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startProcess } from '../../support/programs.ts';

const scripts = resolve(import.meta.dirname, '../../../scripts');
const sum = '0123456789abcdef'.repeat(4);

describe('scripts/bootstrap --user-data', () => {
  it('prints user data that AWS takes, whatever token the address has', async () => {
    const address = `https://state.s3.eu-central-1.amazonaws.com/agent.tar.gz?token=${'a'.repeat(2_500)}`;
    const words = ['--user-data', '--url', address, '--sha256', sum, '--endpoint', "http://it's:9000"];
    const { status: code, stdout } = await startProcess(join(scripts, 'bootstrap'), words).ended;
    expect([code, stdout.split('\n')[0]]).toEqual([0, '#!/bin/sh']);
    // What AWS takes of it.
    expect(Buffer.byteLength(stdout)).toBeLessThan(16_384);
    expect(stdout.split('\n')[2]).toContain(` --endpoint 'http://it'\\''s:9000'`);
  });

  it.each([
    ['cannot use --root with --user-data: at its first boot a machine is made a node', ['--root', '/tmp']],
    ['cannot print user data: run this script by its path', []],
  ])('prints no user data that would not do: %s', async (message, more) => {
    const words = ['--user-data', '--url', 'https://x/y', '--sha256', sum, ...more];
    const program = startProcess('sh', ['-s', '--', ...words]);
    program.child.stdin.end(readFileSync(join(scripts, 'bootstrap')));
    expect(await program.ended).toMatchObject({ status: 64, stdout: '', stderr: `bootstrap: ${message}\n` });
  });

  it.each([
    [['--node', '-a'], /^cannot use --node '-a': an id has up to 64 letters/],
    [['--node', 'web.1'], /^cannot use --node 'web.1': an id has up to 64 letters/],
    [['--node', 'a'.repeat(65)], /^cannot use --node: an id has up to 64 letters/],
    [['--cluster', 'a b'], /^cannot use --cluster 'a b': an id has/],
    [['--role', 'both'], /^cannot use --role 'both': it is app, edge or app,edge$/],
    [['--endpoint', 'minio:9000'], /^cannot use --endpoint: it begins with neither/],
    ...[
      's3://State',
      's3://st_ate/x',
      's3://ab',
      's3://-abc',
      's3://abc-',
      `s3://${'a'.repeat(64)}`,
      's3://state/pre//x',
      's3://state/.x',
      's3://state/x?y',
      'file://state',
      'state',
    ].map((store): [string[], RegExp] => [
      ['--store', store],
      /^cannot use --store '.*': it is file:\/\/\/DIRECTORY/,
    ]),
  ])('prints no user data whose words `reeve init` would refuse: %j', async (more, message) => {
    const words = ['--user-data', '--url', 'https://x/y', '--sha256', sum, ...more];
    const end = await startProcess(join(scripts, 'bootstrap'), words).ended;
    expect([end.status, end.stdout]).toEqual([64, '']);
    expect(end.stderr.replace(/^bootstrap: /, '').trimEnd()).toMatch(message);
  });

  it.each([
    ['--store', 's3://my.state-1/pre/x/'],
    ['--store', 's3://state/'],
    ['--store', 'file:///srv/store'],
    ['--role', 'edge,app'],
    ['--node', 'A_b-1'],
  ])('prints user data with %s %s', async (flag, value) => {
    const words = ['--user-data', '--url', 'https://x/y', '--sha256', sum, flag, value];
    const { status: code, stdout } = await startProcess(join(scripts, 'bootstrap'), words).ended;
    expect([code, stdout.includes(` ${flag} '${value}'`)]).toEqual([0, true]);
  });
});
