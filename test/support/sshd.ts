// A real sshd on 127.0.0.1 whose keys are restricted as the runbook says: each leads to one rsync, of one directory, one way.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from './after-test.ts';
import { freePort } from './ports.ts';
import { makeTempDir } from './temp.ts';

type Clean = () => void | Promise<void>;

export type Sshd = {
  readonly port: number;
  /** Host key and port as `known_hosts` has them, for another port where something stands before it. */
  knownHosts(port?: number): string;
  /** Lets a new key in, which may run the command and nothing else; gives the private key. */
  allow(command: string): string;
  /** Ends it and every connection, as a cut does. */
  cut(): void;
  start(): Promise<void>;
};

export async function startSshd(whenFinished: (clean: Clean) => void = onTestFinished): Promise<Sshd> {
  const dir = makeTempDir(whenFinished as (clean: () => void) => void);
  const port = await freePort();
  const file = (name: string): string => join(dir, name);
  const makeKey = (name: string): string => {
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', file(name)]);
    return readFileSync(file(name), 'utf8');
  };
  makeKey('host');
  // Where Debian's unit would have made it.
  mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
  writeFileSync(file('authorized_keys'), '');
  writeFileSync(file('config'), renderConfig(dir, port));

  let daemon: ReturnType<typeof spawn> | undefined;
  /** The one before has left the port. */
  let isFree: Promise<unknown> = Promise.resolve();
  const cut = (): void => {
    if (daemon?.pid !== undefined) for (const pid of listTree(daemon.pid)) kill(pid);
    daemon = undefined;
  };
  const start = async (): Promise<void> => {
    await isFree;
    daemon = spawn('/usr/sbin/sshd', ['-D', '-e', '-f', file('config')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    isFree = once(daemon, 'exit');
    let said = '';
    daemon.stderr?.on('data', (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-10_000);
    });
    for (let tries = 0; !(await answers(port)); tries += 1) {
      if (tries > 1_200 || daemon.exitCode !== null) throw new Error(`sshd does not answer: ${said}`);
      await sleep(25);
    }
  };
  whenFinished(cut);
  await start();

  let count = 0;
  return {
    port,
    cut,
    start,
    knownHosts: (at = port) => {
      const [type, key] = readFileSync(file('host.pub'), 'utf8').split(' ');
      return `[127.0.0.1]:${at} ${type} ${key}\n`;
    },
    allow: (command) => {
      count += 1;
      const privateKey = makeKey(`key-${count}`);
      const publicKey = readFileSync(file(`key-${count}.pub`), 'utf8').trim();
      const line = `restrict,command="${command}" ${publicKey}\n`;
      writeFileSync(file('authorized_keys'), line, { flag: 'a' });
      return privateKey;
    },
  };
}

function renderConfig(dir: string, port: number): string {
  return [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${join(dir, 'host')}`,
    `AuthorizedKeysFile ${join(dir, 'authorized_keys')}`,
    'PermitRootLogin forced-commands-only',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'UsePAM no',
    'StrictModes no',
    'PidFile none',
    'MaxStartups 100',
    'LogLevel ERROR',
    '',
  ].join('\n');
}

async function answers(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('data', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
    socket.once('close', () => resolve(false));
  });
}

/** The process and all below it: what serves a connection is a child of the daemon's. */
function listTree(pid: number): number[] {
  let children = '';
  try {
    children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  } catch {
    return [];
  }
  return [
    pid,
    ...children
      .trim()
      .split(' ')
      .filter(Boolean)
      .flatMap((child) => listTree(Number(child))),
  ];
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}
