// A real image registry on loopback (Debian's docker-registry), with or without basic authentication.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './ports.ts';

export type Registry = {
  /** `127.0.0.1:PORT`, as it stands in a reference. */
  host: string;
  stop(): Promise<void>;
};

export type RegistryOptions = {
  /** Where images are kept: registries that share it have the same. */
  root: string;
  login?: { user: string; password: string };
};

export async function startRegistry({ root, login }: RegistryOptions): Promise<Registry> {
  const dir = mkdtempSync(join(tmpdir(), 'reeve-registry-'));
  mkdirSync(root, { recursive: true });
  const host = `127.0.0.1:${await freePort()}`;
  const passwords = join(dir, 'htpasswd');
  if (login !== undefined) writeFileSync(passwords, `${login.user}:${bcrypt(login.password)}\n`);
  const config = {
    version: '0.1',
    log: { level: 'error' },
    storage: { filesystem: { rootdirectory: root } },
    http: { addr: host },
    ...(login === undefined ? {} : { auth: { htpasswd: { realm: 'reeve', path: passwords } } }),
  };
  // JSON is YAML.
  writeFileSync(join(dir, 'config.yml'), JSON.stringify(config));
  const child = spawn('/usr/bin/docker-registry', ['serve', join(dir, 'config.yml')], { stdio: 'ignore' });
  const ended = once(child, 'exit');
  await answers(`http://${host}/v2/`);
  return {
    host,
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function answers(url: string): Promise<void> {
  for (let tries = 0; tries < 1_200; tries += 1) {
    const status = await fetch(url).then(
      (response) => response.status,
      () => undefined,
    );
    if (status === 200 || status === 401) return;
    await sleep(25);
  }
  throw new Error(`no registry answers at ${url}`);
}

/** The C library's crypt knows bcrypt, and perl knows crypt. */
function bcrypt(password: string): string {
  const salt = `$2y$05$${'reeveReeve'.repeat(3).slice(0, 21)}e`;
  return execFileSync('/usr/bin/perl', ['-e', 'print crypt($ARGV[0], $ARGV[1])', password, salt], {
    encoding: 'utf8',
  });
}
