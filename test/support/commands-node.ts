// A node with the section `commands` alone whose API is called: on a socket that a stand-in for systemd holds.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';
import { onTestFinished } from './after-test.ts';
import { type AgendaClient, createAgendaClient } from './agenda/client.ts';
import { type ProgramEnd, startProcess } from './programs.ts';
import { holdPublicSocket, holdSocket, type SocketHolder } from './socket-holder.ts';
import { makeTempDir } from './temp.ts';

export const nodeToken = 'tok-3f9c';
/** What a node takes this boot for. */
export const nodeBoot = 'boot-1';

/** As it is asked for. */
export const shellRequest = (id: string, text: string) => ({
  job_id: id,
  dir: '/',
  mode: 'shell',
  shell: text,
});

/** As it stands in a record. */
export const echoRequest = { jobId: 'a', dir: '/', env: [], mode: 'shell', shell: 'echo ran' };

export const aCommandRecord = (state: object, more: object = {}) => ({
  ...{ jobId: 'a', generation: 'g-1', acceptedAt: '2026-06-04T03:00:00.000Z', bootId: nodeBoot, state },
  ...more,
});

export type CommandsNode = {
  readonly root: string;
  readonly stateDir: string;
  readonly configFile: string;
  readonly env: Readonly<Record<string, string>>;
  hold(idleSeconds?: number): Promise<SocketHolder>;
  /** On every address of a network of its own. */
  holdPublic(idleSeconds: number): Promise<SocketHolder>;
  /** Holds the socket, and calls. */
  serve(idleSeconds?: number): Promise<ServedNode>;
  reeve(...words: string[]): Promise<ProgramEnd>;
  /** Names of the files of commands, sorted; staged ones as well. */
  files(): string[];
  record(key: string): Record<string, unknown>;
  writeRecord(key: string, record: object): void;
};

export type ServedNode = { client: AgendaClient; port: number; holder: SocketHolder };

export function makeCommandsNode(section: Readonly<Record<string, unknown>> = {}): CommandsNode {
  const root = makeTempDir();
  const stateDir = join(root, 'state');
  const configFile = join(root, 'reeve.yaml');
  const commands = { machine_id: 7, token: nodeToken, ...section };
  writeFileSync(configFile, JSON.stringify({ commands }), { mode: 0o600 });
  const env = {
    REEVE_CONFIG: configFile,
    REEVE_STATE: stateDir,
    REEVE_RUN: join(root, 'run'),
    REEVE_CACHE: join(root, 'cache'),
  };
  mkdirSync(join(root, 'run'));
  writeFileSync(join(root, 'run/boot'), `${nodeBoot}\n`);
  const at = (name: string): string => join(stateDir, 'commands', name);
  const hold = async (idleSeconds = 5): Promise<SocketHolder> => {
    const holder = await holdSocket(['api', 'commands', '--idle', String(idleSeconds)], env);
    // Before the holder is stopped, which waits for all that holds its output.
    onTestFinished(() => endCommands(configFile));
    return holder;
  };
  return {
    ...{ root, stateDir, configFile, env, hold },
    holdPublic: (idleSeconds) => holdPublicSocket(['api', 'commands', '--idle', String(idleSeconds)], env),
    serve: async (idleSeconds) => {
      const holder = await hold(idleSeconds);
      const { port } = holder;
      return { client: createAgendaClient({ port, token: nodeToken }), port, holder };
    },
    reeve: (...words) => startProcess(inject('reeveBin'), words, env).ended,
    files: () => (existsSync(at('')) ? readdirSync(at('')).sort() : []),
    record: (key) => JSON.parse(readFileSync(at(`${key}.json`), 'utf8')) as Record<string, unknown>,
    writeRecord: (key, record) => {
      mkdirSync(at(''), { recursive: true });
      writeFileSync(at(`${key}.json`), JSON.stringify({ version: 1, ...record }));
    },
  };
}

/** What a test that has failed has left running: by their configuration, as some have nothing in a record yet. */
function endCommands(configFile: string): void {
  for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
      if (words.includes(configFile) && words.includes('run')) process.kill(Number(name), 'SIGTERM');
    } catch {
      // It has ended meanwhile.
    }
  }
}
