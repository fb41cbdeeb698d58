// `/v1/logs` over real files: what is given, how much of it, and what is not opened.
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chownSync,
  linkSync,
  mkdirSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import type { LogsAnswer } from '../../../src/lib/agenda/instances.ts';
import { callRaw } from '../../support/agenda/client.ts';
import { type InstanceApi, serveInstances } from '../../support/agenda/instance-api.ts';
import { makeCommandsNode, nodeToken } from '../../support/commands-node.ts';
import { startProcess } from '../../support/programs.ts';

type LogsApi = InstanceApi & {
  readonly dir: string;
  put(name: string, content: string | Buffer): string;
  ask(query?: string): Promise<{ status: number; answer: LogsAnswer & { error?: string } }>;
};

async function serveLogs(app = 'app', instance = 'default'): Promise<LogsApi> {
  const api = await serveInstances();
  const dir = join(api.root, 'logs');
  mkdirSync(dir);
  return {
    ...{ ...api, dir },
    put: (name, content) => {
      const path = join(dir, name);
      writeFileSync(path, content);
      return path;
    },
    ask: async (query = '') => {
      const place = [app, instance].map(encodeURIComponent).join('/');
      const { status, text } = await api.call(`/v1/logs/${place}?dir=${encodeURIComponent(dir)}${query}`);
      return { status, answer: JSON.parse(text) as LogsAnswer };
    },
  };
}

const numbered = (count: number, from = 1): string[] =>
  Array.from({ length: count }, (_, index) => `{"msg":"line ${index + from}"}`);
const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');

describe('the logs of an instance', () => {
  it('are the files of its name, in their order, and nobody else’s', async () => {
    const api = await serveLogs();
    api.put('app__default__worker__2.log', 'w2\n');
    api.put('app__default.log', 'a\r\nb\n\nc');
    api.put('app__default__worker.log', 'w\n');
    for (const other of ['app__default2.log', 'other__default.log', 'app__default.log.1', 'app__default.txt'])
      api.put(other, 'x\n');
    mkdirSync(join(api.dir, 'app__default__directory.log'));
    expect(await api.ask()).toEqual({
      status: 200,
      answer: {
        app: 'app',
        instance: 'default',
        logs: [
          { service: '', file: 'app__default.log', lines: ['a', 'b', '', 'c'] },
          { service: 'worker', file: 'app__default__worker.log', lines: ['w'] },
          { service: 'worker__2', file: 'app__default__worker__2.log', lines: ['w2'] },
        ],
      },
    });
    const files = async (query: string): Promise<string[]> =>
      ((await api.ask(query)).answer.logs ?? []).map(({ file }) => file);
    expect(await files('&service=worker')).toEqual([
      'app__default__worker.log',
      'app__default__worker__2.log',
    ]);
    expect(await files('&service=worker__2')).toEqual(['app__default__worker__2.log']);
    expect((await api.ask('&service=work')).status).toBe(404);
  });

  it.each([
    ['', 200],
    ['&tail=3', 3],
    ['&tail=5000', 5_000],
    ['&tail=5001', 5_000],
    ['&tail=0', 200],
    ['&tail=-7', 200],
    ['&tail=many', 200],
  ])('are with %j the last %i lines', async (query, count) => {
    const api = await serveLogs();
    const lines = numbered(6_000);
    api.put('app__default.log', text(lines));
    expect((await api.ask(query)).answer.logs[0]?.lines).toEqual(lines.slice(-count));
  });

  it('are the last two mebibytes at most, from the begin of a line', async () => {
    const api = await serveLogs();
    const line = 'x'.repeat(1_023);
    const whole = Array.from({ length: 2_048 }, () => line);
    api.put('app__default.log', `${'y'.repeat(500)}\n${text(whole)}`);
    expect((await api.ask('&tail=5000')).answer.logs[0]?.lines, 'as it begins with a line').toEqual(whole);
    appendFileSync(join(api.dir, 'app__default.log'), 'end\n');
    const cut = [...whole.slice(1), 'end'];
    expect((await api.ask('&tail=5000')).answer.logs[0]?.lines, 'as it begins within one').toEqual(cut);
    api.put('app__default.log', 'x'.repeat(3 << 20));
    const [only] = (await api.ask()).answer.logs;
    expect([only?.lines.length, (only?.lines[0]?.length ?? 0) >= 2 << 20]).toEqual([1, true]);
  });

  it('are less of each where there are many files, so that an answer is never too large', async () => {
    const api = await serveLogs();
    for (let index = 0; index < 64; index += 1) {
      api.put(`app__default__s${index}.log`, text(Array.from({ length: 2_048 }, () => 'x'.repeat(1_023))));
    }
    const { status, answer } = await api.ask('&tail=5000');
    const counts = new Set(answer.logs.map(({ lines }) => lines.length));
    expect([status, answer.logs.length, [...counts]]).toEqual([200, 64, [256]]);
  });

  it('are text whatever the bytes are, and none of an empty file', async () => {
    const api = await serveLogs();
    api.put('app__default.log', Buffer.from([0xff, 0x41, 0x00, 0x0a]));
    api.put('app__default__empty.log', '');
    const { answer } = await api.ask();
    expect(answer.logs.map(({ lines }) => lines)).toEqual([['\ufffdA\0'], []]);
  });

  it('are 404 where there are none, and where the directory is none', async () => {
    const api = await serveLogs();
    const told = (dir: string, why = ''): string => `no logs found for app/default in "${dir}"${why}`;
    const empty = await api.ask();
    expect(empty).toEqual({ status: 404, answer: { error: expect.stringMatching(/ in "\/[^"]+"$/) } });
    const file = api.put('app__default__file', 'x');
    for (const [dir, why] of [
      ['/no/such/directory', ': there is no such directory'],
      [file, ': it is no directory'],
      [join(file, 'below'), ': it is no directory'],
      [`/${'x'.repeat(300)}`, ': its name is too long'],
    ] as const) {
      const answer = await api.call(`/v1/logs/app/default?dir=${encodeURIComponent(dir)}`);
      expect([answer.status, answer.text]).toEqual([404, JSON.stringify({ error: told(dir, why) })]);
    }
  });

  it.each(['', '?dir=', '?dir=logs', '?dir=../logs', '?dir=/a%00'])('are 400 with %j', async (query) => {
    const api = await serveInstances();
    const answer = await api.call(`/v1/logs/app/default${query}`);
    expect([answer.status, Object.keys(JSON.parse(answer.text) as object)]).toEqual([400, ['error']]);
  });
});

describe('what lies in a directory of logs', () => {
  it('is not followed where it is a link, and not waited for where it is a pipe or a socket', async () => {
    const api = await serveLogs();
    symlinkSync('/etc/hostname', join(api.dir, 'app__default__link.log'));
    symlinkSync('/no/such/file', join(api.dir, 'app__default__dead.log'));
    execFileSync('mkfifo', [join(api.dir, 'app__default__pipe.log')]);
    const socket = createServer().listen(join(api.dir, 'app__default__socket.log'));
    await new Promise((resolve) => socket.once('listening', resolve));
    onTestFinished(() => void socket.close());
    expect((await api.ask()).status).toBe(404);
    linkSync(api.put('plain', 'fine\n'), join(api.dir, 'app__default__hard.log'));
    expect((await api.ask()).answer.logs.map(({ service }) => service)).toEqual(['hard']);
  });

  it('is left out where it may not be read, and takes no other away', async () => {
    const node = makeCommandsNode();
    const dir = join(node.root, 'logs');
    mkdirSync(dir);
    for (const name of ['app__one.log', 'app__one__own.log', 'app__two.log']) {
      writeFileSync(join(dir, name), 'line\n', { mode: 0o600 });
      if (name !== 'app__one.log') chownSync(join(dir, name), 65_534, 65_534);
    }
    // Root as its unit has it: without a capability.
    const bare = ['--bounding-set=-all', '--inh-caps=-all', '--', inject('reeveBin')];
    const api = startProcess('setpriv', [...bare, 'api', 'commands', '--listen', '127.0.0.1:0'], node.env);
    onTestFinished(async () => {
      api.child.kill('SIGTERM');
      await api.ended;
    });
    let told = '';
    api.child.stderr.on('data', (chunk: Buffer) => {
      told += chunk.toString();
    });
    await api.waitFor('listening on 127.0.0.1:');
    const port = Number(/listening on 127\.0\.0\.1:(\d+)/.exec(told)?.[1]);
    const ask = async (instance: string): Promise<unknown[]> => {
      const path = `/v1/logs/app/${instance}?dir=${dir}`;
      const { status, text: said } = await callRaw(port, {
        path,
        headers: { 'X-Agenda-Node-Token': nodeToken },
      });
      return [status, JSON.parse(said)];
    };
    const logs = [{ service: '', file: 'app__one.log', lines: ['line'] }];
    expect(await ask('one')).toEqual([200, { app: 'app', instance: 'one', logs }]);
    const error = `cannot read "${join(dir, 'app__two.log')}": EACCES: permission denied`;
    expect(await ask('two')).toEqual([500, { error }]);
  });

  it.each([
    ['..', '..'],
    ['../../etc', 'passwd'],
    ['a/b', 'c'],
    ['%2e%2e', '%2F'],
    ['*', '*'],
  ])('cannot be left by the names %s and %s', async (app, instance) => {
    const api = await serveLogs(app, instance);
    api.put('app__default.log', 'x\n');
    expect(await api.ask()).toEqual({
      status: 404,
      answer: { error: expect.stringMatching(/^no logs found for .* in "\/[^"]+"$/) },
    });
  });

  it('may grow and shrink while it is read', async () => {
    const api = await serveLogs();
    const path = api.put('app__default.log', text(numbered(1_000)));
    let isOver = false;
    const changing = (async () => {
      while (!isOver) {
        appendFileSync(path, text(numbered(1_000)));
        await new Promise((resolve) => setImmediate(resolve));
        truncateSync(path, 100);
      }
    })();
    for (let count = 0; count < 50; count += 1) expect((await api.ask()).status).toBe(200);
    isOver = true;
    await changing;
  });

  it('is looked at for two callers at once, and for the others after them', async () => {
    const api = await serveLogs();
    api.put('app__default.log', text(numbered(5_000)));
    const answers = await Promise.all(Array.from({ length: 30 }, () => api.ask('&tail=5000')));
    expect(new Set(answers.map(({ status, answer }) => `${status} ${answer.logs[0]?.lines.length}`))).toEqual(
      new Set(['200 5000']),
    );
  });
});
