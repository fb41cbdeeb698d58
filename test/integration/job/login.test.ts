// The login for a registry, which somebody else keeps: the file is read at each pull, and renewed through a socket when it is refused.
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { docker, engineSocket } from '../../support/engine.ts';
import { type JobRuns, makeJobRuns } from '../../support/job-runs.ts';
import { writeSecret } from '../../support/jobs-machine.ts';
import type { PloyJob } from '../../support/ploy/model.ts';
import { type Registry, startRegistry } from '../../support/registry.ts';
import { makeTempDir } from '../../support/temp.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;
const login = { user: 'reeve', password: 'the-right-one' };
const root = makeTempDir(afterAll);
const socket = engineSocket();
let registry: Registry;
let image: string;

beforeAll(async () => {
  const open = await startRegistry({ root });
  // An image of its own: one that has been pushed is none of this machine alone any more.
  const container = docker(socket, ['create', 'reeve-demo/worker:v1']).trim();
  docker(socket, ['commit', container, `${open.host}/team/job:v1`]);
  docker(socket, ['rm', container]);
  docker(socket, ['push', `${open.host}/team/job:v1`]);
  docker(socket, ['rmi', `${open.host}/team/job:v1`]);
  await open.stop();
  registry = await startRegistry({ root, login });
  image = `${registry.host}/team/job:v1`;
});

afterAll(async () => await registry.stop());

type Login = { runs: JobRuns; job: PloyJob; env: Record<string, string>; write(password: string): void };

async function aJobOf(command = 'echo pulled'): Promise<Login> {
  const runs = await makeJobRuns();
  const job = runs.claim({ image, command });
  const file = join(runs.root, 'docker-auth.json');
  onTestFinished(() => {
    for (const id of docker(socket, ['images', '-q', image]).split('\n')) {
      if (id !== '') docker(socket, ['rmi', '-f', image]);
    }
  });
  const env = {
    PLOY_DOCKER_AUTH_CONFIG_FILE: file,
    PLOY_DOCKER_AUTH_REFRESH_SOCKET: join(runs.root, 'refresh.sock'),
  };
  const write = (password: string): void => {
    const auth = Buffer.from(`${login.user}:${password}`).toString('base64');
    writeSecret(file, JSON.stringify({ auths: { [registry.host]: { auth } } }));
  };
  return { runs, job, env, write };
}

/** Whoever keeps the login. Gives what was asked of it, in its words. */
async function keepLogin({ env }: Login, answer: (connection: Socket) => void): Promise<string[]> {
  const asked: string[] = [];
  const server = createServer((connection) => {
    connection.on('error', () => {});
    connection.once('data', (text) => {
      asked.push(text.toString());
      answer(connection);
    });
  });
  await new Promise<void>((resolve) => server.listen(env['PLOY_DOCKER_AUTH_REFRESH_SOCKET'], resolve));
  onTestFinished(() => void server.close());
  return asked;
}

const run = ({ runs, job, env }: Login) => runs.start(['job', 'run', idOf(job)], env).ended;
const question = () => `${JSON.stringify({ registry_host: registry.host, validation_image: image })}\n`;

describe('the login of a job for a registry', () => {
  it('P50: is read anew at each pull, and asks nobody where it is good', async () => {
    const about = await aJobOf();
    about.write(login.password);
    const asked = await keepLogin(about, (connection) => connection.end('{"ok":true}\n'));
    expect((await run(about)).status).toBe(0);
    expect(about.job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
    expect(asked).toEqual([]);
  });

  it.each([
    ['a line, and hangs up', (connection: Socket) => connection.end('{"ok":true}\n')],
    ['a line, and stays', (connection: Socket) => connection.write('{"ok":true}\n')],
    ['without a line feed', (connection: Socket) => connection.end('{"ok":true}')],
  ])('P50: is renewed through the socket where it is refused, which answers %s', async (_, answer) => {
    const about = await aJobOf();
    about.write('an-old-one');
    const asked = await keepLogin(about, (connection) => {
      about.write(login.password);
      answer(connection);
    });
    expect((await run(about)).status).toBe(0);
    expect(about.job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
    expect(asked).toEqual([question()]);
  });

  it.each([
    ['the new one is refused as well', '{"ok":true}\n', /cannot pull/],
    ['nobody can renew it', '{"ok":false,"error":"no role"}\n', /cannot renew the login for .*: no role/],
    ['the answer is none', 'what?\n', /cannot renew the login for .*: the answer is no JSON/],
    ['they hang up', '', /cannot renew the login for /],
  ])('P59: is asked for once, and the job is an error where %s', async (_, answer, words) => {
    const about = await aJobOf();
    about.write('an-old-one');
    const asked = await keepLogin(about, (connection) => connection.end(answer));
    const end = await run(about);
    expect(end.status).toBe(0);
    expect(about.job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
    expect(about.job.completions[0]?.stats?.error).toMatch(words);
    expect(asked).toEqual([question()]);
    expect(`${end.stderr}${JSON.stringify(about.job.events)}`).not.toContain('an-old-one');
  });

  it('P59: and nobody is at the socket: the job is an error that says so', async () => {
    const about = await aJobOf();
    about.write('an-old-one');
    expect((await run(about)).status).toBe(0);
    expect(about.job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
    expect(about.job.completions[0]?.stats?.error).toMatch(/cannot renew the login for .*ENOENT/);
  });

  it('P34: told to stop while somebody thinks about it leaves the job to the next one', async () => {
    const about = await aJobOf();
    about.write('an-old-one');
    const { runs, job, env } = about;
    let isAsked = (): void => {};
    const whenAsked = new Promise<void>((resolve) => {
      isAsked = resolve;
    });
    const asked = await keepLogin(about, () => isAsked());
    const program = runs.start(['job', 'run', idOf(job)], env);
    await whenAsked;
    const toldAtMs = Date.now();
    program.child.kill('SIGTERM');
    expect((await program.ended).status).toBe(143);
    expect(Date.now() - toldAtMs).toBeLessThan(10_000);
    expect([asked.length, job.completions, runs.isClosed(job)]).toEqual([1, [], false]);
    about.write(login.password);
    expect((await run(about)).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
  });
});
