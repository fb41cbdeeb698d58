// An engine of the test's own that goes away and comes back, and what it leaves behind: nothing.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openEngine } from '../../../src/lib/docker/client.ts';
import type { Engine } from '../../../src/lib/docker/types.ts';
import { UnavailableError } from '../../../src/lib/errors.ts';
import {
  buildImages,
  docker,
  engineDirectory,
  haltEngine,
  startEngine,
  stopEngine,
} from '../../support/engine.ts';

const directory = engineDirectory('outage');
let socket: string;
let engine: Engine;

beforeAll(() => {
  socket = startEngine(directory);
  buildImages(socket);
  engine = openEngine({ socket });
});
afterAll(() => {
  engine.close();
  stopEngine(directory);
});

const list = () => engine.listContainers({ labels: [] });

describe('an engine that goes away', () => {
  it.each([
    ['gracefully', 'halt'],
    ['by SIGKILL', 'kill'],
  ] as const)('%s is unavailable, and the same client finds it again', async (_name, how) => {
    await list();
    haltEngine(directory, how);
    await expect(list()).rejects.toThrow(UnavailableError);
    await expect(engine.startContainer('web')).rejects.toThrow(UnavailableError);
    startEngine(directory);
    expect(await list()).toEqual([]);
  });

  it('in the middle of a wait ends the wait', async () => {
    docker(socket, ['run', '-d', '--name', 'box', 'reeve-demo/box:v1']);
    const waiting = engine.waitContainer('box').then(
      () => undefined,
      (error) => error,
    );
    await list();
    haltEngine(directory, 'kill');
    expect(await waiting).toBeInstanceOf(UnavailableError);
    startEngine(directory);
    expect((await list()).map(({ name, state }) => `${name} ${state}`)).toEqual(['box exited']);
  });
});

describe('an engine of our own', () => {
  it('leaves no process, bridge, group or file, even after SIGKILL', async () => {
    const own = engineDirectory('own');
    const ownSocket = startEngine(own);
    buildImages(ownSocket);
    const bridge = readFileSync(join(own.dir, 'bridge'), 'utf8').trim();
    docker(ownSocket, ['network', 'create', 'left-over']);
    docker(ownSocket, ['run', '-d', '--network', 'left-over', 'reeve-demo/worker:v1']);
    const id = docker(ownSocket, ['network', 'ls', '-q', '--filter', 'name=left-over']).trim();
    expect(readdirSync('/sys/class/net')).toEqual(expect.arrayContaining([bridge, `br-${id}`]));
    haltEngine(own, 'kill');
    stopEngine(own);
    stopEngine(own);
    const links = readdirSync('/sys/class/net');
    expect([links.includes(bridge), links.includes(`br-${id}`), existsSync(own.dir)]).toEqual([
      false,
      false,
      false,
    ]);
    expect(processesNaming(own.dir)).toEqual([]);
  });

  it('that cannot be started says why', () => {
    const own = engineDirectory('broken');
    process.env['DOCKERD'] = '/bin/ls';
    try {
      expect(() => startEngine(own)).toThrow(
        /unrecognized option '--data-root'[\s\S]*cannot start dockerd: it ended/,
      );
    } finally {
      delete process.env['DOCKERD'];
      stopEngine(own);
    }
  });
});

function processesNaming(text: string): string[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry) && Number(entry) !== process.pid)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text);
      } catch {
        return false;
      }
    });
}
