// What the client does with answers that a healthy engine gives rarely: on real sockets, from fake engines.
import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { type EngineOptions, openEngine } from '../../../src/lib/docker/client.ts';
import { EngineError, NameTakenError, PullError } from '../../../src/lib/docker/errors.ts';
import type { ContainerSpec, Engine } from '../../../src/lib/docker/types.ts';
import { InputError, type ReeveError, UnavailableError } from '../../../src/lib/errors.ts';
import { answer, type FakeEngine, startFakeEngine } from '../../support/fake-engine.ts';

const closers: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Where something hangs; else nothing may be late, whatever holds this process up. */
const short = { readMs: 500, changeMs: 500, stopMarginMs: 200, idleMs: 150, waitSliceMs: 100 };

type Handler = Parameters<typeof startFakeEngine>[1];

async function open(
  handler: Handler,
  options: Partial<EngineOptions> = {},
): Promise<{ engine: Engine; fake: FakeEngine }> {
  const fake = await startFakeEngine('1.41', handler);
  const engine = openEngine({ socket: fake.socket, ...options });
  closers.push(
    () => fake.stop(),
    () => engine.close(),
  );
  return { engine, fake };
}

async function failure(work: Promise<unknown>): Promise<ReeveError> {
  return await work.then(
    () => expect.fail('nothing failed'),
    (error) => error,
  );
}

const spec: ContainerSpec = {
  name: 'web',
  image: 'blog/web:1',
  env: { TOKEN: 'hush-hush-hush', SHORT: 'no' },
  labels: {},
  restart: 'no',
  ports: [],
  volumes: [],
  logs: { maxSizeBytes: 1000, maxFiles: 1 },
};
const image = { Id: 'sha256:1', RepoDigests: [] };
const details = (status: string) => ({ Id: 'c1', Name: '/web', State: { Status: status } });

describe('a refused request', () => {
  it('carries the words of the engine, never a value (R50)', async () => {
    const { engine } = await open((_line, response) =>
      answer(response, 400, { message: 'invalid variable TOKEN=hush-hush-hush\n of no use' }),
    );
    const error = await failure(engine.createContainer(spec));
    expect(error).toEqual(
      new InputError('cannot create container "web": invalid variable TOKEN=*** of no use'),
    );
  });

  it('that asks is unavailability when the engine fails inside, one that changes is that step', async () => {
    const { engine } = await open((_line, response) =>
      answer(response, 500, { message: 'database is locked' }),
    );
    const list = await failure(engine.listContainers({ labels: [] }));
    expect(list).toEqual(
      new UnavailableError('cannot list containers: database is locked', { code: 'engine' }),
    );
    const start = await failure(engine.startContainer('web'));
    expect(start).toBeInstanceOf(EngineError);
    expect(start).toMatchObject({
      message: 'cannot start container "web": database is locked',
      status: 500,
      exitCode: 1,
    });
  });

  it('of an engine that is shutting down is unavailability', async () => {
    const { engine } = await open((_line, response) => answer(response, 503, { message: 'shutting down' }));
    expect(await failure(engine.startContainer('web'))).toBeInstanceOf(UnavailableError);
  });

  it('for a name in use is told by what is, where the status says only 500', async () => {
    const { engine } = await open((line, response) => {
      if (line.includes('/create'))
        answer(response, 500, { cause: 'x', message: 'name in use', response: 500 });
      else answer(response, 200, details('running'));
    });
    expect(await failure(engine.createContainer(spec))).toBeInstanceOf(NameTakenError);
  });

  it('with status 404 is not the missing image where the image is there', async () => {
    const { engine } = await open((line, response) => {
      if (line.includes('/create')) answer(response, 404, { message: 'network blog not found' });
      else answer(response, 200, image);
    });
    const error = await failure(engine.createContainer(spec));
    expect(error).toMatchObject({
      code: 'engine',
      message: 'cannot create container "web": network blog not found',
    });
  });

  it('to remove is success while somebody else removes', async () => {
    const { engine } = await open((line, response) => {
      if (line.startsWith('DELETE')) answer(response, 409, { message: 'removal is already in progress' });
      else answer(response, 200, details('removing'));
    });
    await engine.removeContainer('web', { force: true });
  });
});

describe('a wait', () => {
  it('is asked again and again while the container runs', async () => {
    let waits = 0;
    const { engine, fake } = await open(
      (line, response) => {
        if (!line.includes('/wait')) return answer(response, 200, details('running'));
        waits += 1;
        if (waits >= 3) answer(response, 200, { StatusCode: 4 });
      },
      { deadlines: { waitSliceMs: 1_000 } },
    );
    expect(await engine.waitContainer('web')).toBe(4);
    const asked = fake.lines().map((line) => line.replace(/^.*\//, ''));
    expect(asked.slice(0, 5)).toEqual([
      'wait?condition=not-running',
      'json',
      'wait?condition=not-running',
      'json',
      'wait?condition=not-running',
    ]);
  });

  it('ends with the deadline of a question where the engine hangs', async () => {
    const { engine } = await open(() => {}, { deadlines: short });
    const error = await failure(engine.waitContainer('web'));
    expect(error).toMatchObject({
      code: 'deadline',
      message: expect.stringContaining('cannot inspect container "web"'),
    });
  });

  it('ends when the run is interrupted, and other calls still work then', async () => {
    const controller = new AbortController();
    const { engine } = await open(
      (line, response) => {
        if (line.includes('/wait')) controller.abort();
        else answer(response, 200, []);
      },
      { signal: controller.signal },
    );
    const error = await failure(engine.waitContainer('web'));
    expect(error).toMatchObject({
      code: 'interrupted',
      message: 'cannot wait for container "web": interrupted',
    });
    expect(await engine.listContainers({ labels: [] })).toEqual([]);
    expect(await failure(engine.pullImage('a:1'))).toMatchObject({ code: 'interrupted' });
  });
});

describe('a pull', () => {
  const line = (value: unknown): string => `${JSON.stringify(value)}\r\n`;

  it('has failed where the stream says so, though its status is 200', async () => {
    const { engine } = await open((_line, response) => {
      response.write(line({ status: 'Pulling', id: 'v1' }));
      response.end(
        line({ errorDetail: { message: 'toomanyrequests: slow down' }, error: 'toomanyrequests: slow down' }),
      );
    });
    const error = await failure(engine.pullImage('blog/web:1'));
    expect(error).toBeInstanceOf(PullError);
    expect(error.message).toBe('cannot pull image "blog/web:1": toomanyrequests: slow down');
  });

  it('asks for one tag or digest, never for all', async () => {
    const { engine, fake } = await open((_line, response) => response.end());
    const digest = `sha256:${'a'.repeat(64)}`;
    for (const reference of ['web', 'h:5000/web:2', `h:5000/web:2@${digest}`])
      await engine.pullImage(reference);
    expect(fake.lines().map((seen) => seen.replace('/v1.41', ''))).toEqual([
      'POST /images/create?fromImage=web&tag=latest',
      'POST /images/create?fromImage=h%3A5000%2Fweb&tag=2',
      `POST /images/create?fromImage=h%3A5000%2Fweb&tag=sha256%3A${'a'.repeat(64)}`,
    ]);
    expect(fake.requests.map(({ headers }) => headers['x-registry-auth'])).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('may take longer than its deadline as long as it is not silent', async () => {
    const send: Handler = (_line, response) => {
      let count = 0;
      const timer = setInterval(() => {
        count += 1;
        if (count < 8)
          return response.write(line({ status: 'Downloading', id: 'l', progressDetail: { current: count } }));
        clearInterval(timer);
        return response.end();
      }, 500);
    };
    const { engine } = await open(send, { deadlines: { idleMs: 3_000 } });
    const seen: unknown[] = [];
    await engine.pullImage('web', ({ currentBytes }) => seen.push(currentBytes));
    expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  it('that falls silent ends with its deadline', async () => {
    const { engine, fake } = await open((_line, response) => response.write(line({ status: 'Pulling' })), {
      deadlines: short,
    });
    const error = await failure(engine.pullImage('web'));
    expect(error).toMatchObject({
      code: 'deadline',
      message: `cannot pull image "web": the engine at "${fake.socket}" was silent for 150ms`,
    });
  });

  it('that is cut off has not brought the image', async () => {
    const { engine } = await open((_line, response) => {
      response.write(line({ status: 'Pulling' }), () => response.destroy());
    });
    expect(await failure(engine.pullImage('web'))).toBeInstanceOf(UnavailableError);
  });

  it('that answers something else is no success', async () => {
    const { engine } = await open((_line, response) => response.end('<html>\n'));
    const error = await failure(engine.pullImage('web'));
    expect(error.message).toContain('answers as no container engine does (a line that is not JSON)');
  });
});

it('a process that has asked an engine ends by itself, its connection kept', async () => {
  const { fake } = await open((_line, response) => answer(response, 200, []));
  const client = resolve(import.meta.dirname, '../../../src/lib/docker/client.ts');
  const script = `import { openEngine } from ${JSON.stringify(client)};
    const engine = openEngine({ socket: ${JSON.stringify(fake.socket)} });
    console.log(await engine.listContainers({ labels: [] }));`;
  const child = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    timeout: 60_000,
  });
  expect(child.stdout).toBe('[]\n');
});
