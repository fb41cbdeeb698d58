// What a HAProxy does that the installed one is hard to bring to: silence, an end in the middle, another version's words.
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { InternalError, UnavailableError } from '../../../src/lib/errors.ts';
import { reloadWorkers } from '../../../src/lib/haproxy/reload.ts';
import { askRuntime } from '../../../src/lib/haproxy/runtime.ts';
import { makeTempDir } from '../../support/temp.ts';

const options = { signal: new AbortController().signal, service: 'x.service' };

describe('commands', () => {
  it('are answered one by one, however the answers are cut into pieces', async () => {
    const socket = await listen((connection, text) => {
      if (!text.endsWith('quit\n')) return;
      for (const piece of ['\n', '> one\nand', ' more\n\n', '\n> ', '\n', '> three\n\n>', ' '])
        connection.write(piece);
      connection.end();
    });
    expect(await askRuntime(socket, ['a', 'b', 'c'], options)).toEqual(['one\nand more', '', 'three']);
  });

  it.each(['', 'show info;quit', 'show info\nquit'])(
    'that are not exactly one are refused: %j',
    async (command) => {
      await expect(askRuntime('/nowhere', [command], options)).rejects.toThrow(InternalError);
    },
  );

  it('fail together where HAProxy ends in the middle', async () => {
    const socket = await listen((connection) => connection.end('\n> one\n\n> tw'));
    await expect(askRuntime(socket, ['a', 'b'], options)).rejects.toThrow('1 of 2 commands were answered');
  });

  it('do not wait for ever, nor after an interruption', async () => {
    const socket = await listen(() => {});
    const asked = askRuntime(socket, ['a'], { ...options, timeoutMs: 50 });
    await expect(asked).rejects.toMatchObject({ code: 'deadline' });
    const aborted = askRuntime(socket, ['a'], { ...options, signal: AbortSignal.abort() });
    await expect(aborted).rejects.toMatchObject({ code: 'interrupted' });
    const late = askRuntime(socket, ['a'], { ...options, signal: AbortSignal.timeout(50) });
    await expect(late).rejects.toMatchObject({ code: 'deadline', message: /: no answer in time$/ });
  });

  it('tell which socket is missing, and whose it is', async () => {
    await expect(askRuntime('/nowhere/runtime.sock', ['a'], options)).rejects.toThrow(
      new UnavailableError(
        'cannot ask HAProxy on "/nowhere/runtime.sock": it is not there: is x.service running?',
        { code: 'not-running' },
      ),
    );
  });
});

describe('a reload', () => {
  const show = (count: number): string => `#<PID> <type>\n12 master  ${count} [failed: 0] 0d00h00m22s\n`;
  const worker = (description: string) => (connection: Socket, text: string) => {
    if (text.endsWith('quit\n')) connection.end(`\n> description: ${description}\n\n> `);
  };

  it('whose master says at once what is wrong fails with that', async () => {
    const runtimeSocket = await listen(worker('old'));
    const answer = 'Success=0\n--\n[NOTICE] (1) : version\n[ALERT] (1) : config : bad line\n';
    const master = await listen((connection, text) => connection.end(text === 'reload\n' ? answer : show(0)));
    const reload = reloadWorkers(master, { ...options, runtimeSocket, description: 'new' });
    await expect(reload).rejects.toThrow('cannot reload x.service: [ALERT] (1) : config : bad line');
  });

  it('is ordered again where the master has overheard it', async () => {
    let orders = 0;
    const runtimeSocket = await listen((connection, text) =>
      worker(orders < 2 ? 'old' : 'new')(connection, text),
    );
    const master = await listen((connection, text) => {
      if (text === 'reload\n') orders += 1;
      connection.end(text === 'reload\n' ? '' : show(0));
    });
    await reloadWorkers(master, { ...options, runtimeSocket, description: 'new' });
    expect(orders).toBe(2);
  });

  it('that brings no worker up ends with its deadline', async () => {
    const runtimeSocket = await listen(worker('old'));
    let count = 0;
    const master = await listen((connection, text) => {
      if (text === 'reload\n') count += 1;
      connection.end(text === 'reload\n' ? '' : show(count));
    });
    const reload = reloadWorkers(master, {
      ...options,
      runtimeSocket,
      description: 'new',
      deadlineMs: 2_000,
    });
    await expect(reload).rejects.toThrow(
      'cannot reload x.service: no worker with the new configuration has answered within 2s',
    );
    expect(count).toBe(1);
  });
});

/** A socket on which every new piece of what has come is answered. */
async function listen(answer: (connection: Socket, text: string) => void): Promise<string> {
  const path = join(makeTempDir(), 'socket');
  const connections = new Set<Socket>();
  const server = createServer((connection) => {
    connections.add(connection);
    let text = '';
    connection.on('error', () => {});
    connection.on('data', (chunk) => {
      text += chunk.toString();
      answer(connection, text);
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => {
    for (const connection of connections) connection.destroy();
    server.close();
  });
  return path;
}
