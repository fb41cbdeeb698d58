// The real Caddy in the foreground, with directories and ports of its own, and a client that trusts its certificates.
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CaddyConfig } from '../../src/lib/config/config.ts';
import { onTestFinished } from './after-test.ts';
import { freePort } from './ports.ts';
import { type Program, startProcess } from './programs.ts';
import { makeTempDir } from './temp.ts';

export type CaddyOptions = {
  /** Come up with what was loaded last, as Debian's caddy-api.service does; else always with the boot configuration. */
  resume?: boolean;
  /** Besides the admin API, what the boot configuration holds. */
  boot?: Readonly<Record<string, unknown>>;
  /** Tests that run side by side pass their own hook. */
  whenFinished?: (clean: () => Promise<void> | void) => void;
};

export type Caddy = {
  /** Its admin API and ports; certificates of its own authority. */
  readonly settings: CaddyConfig;
  readonly pid: number;
  /** The admin requests that may change something, `POST /load`, since the first start. Needs it to run. */
  changes(): Promise<string[]>;
  /** Everything that it has logged. */
  log(): string;
  /** The certificate of its own authority. */
  root(): string;
  fetch(domain: string, path?: string, options?: FetchOptions): Promise<HttpsAnswer>;
  stop(): Promise<void>;
  kill(): Promise<void>;
  /** After an end, or ending what runs. */
  restart(): Promise<void>;
};

/** Long enough for a busy machine. */
const startTimeoutMs = 30_000;
const requestTimeoutMs = 15_000;

export async function startCaddy(options: CaddyOptions = {}): Promise<Caddy> {
  const { whenFinished = onTestFinished } = options;
  const directory = makeTempDir(whenFinished);
  const settings: CaddyConfig = {
    admin: `http://127.0.0.1:${await freePort()}`,
    httpPort: await freePort(),
    httpsPort: await freePort(),
    issuer: 'internal',
  };
  const boot = { admin: { listen: new URL(settings.admin).host }, ...options.boot };
  writeFileSync(join(directory, 'boot.json'), JSON.stringify(boot));
  let { program, log } = await run(directory, settings.admin, options);
  const logs = [log];
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    program.child.kill(signal);
    await program.ended;
  };
  whenFinished(() => end('SIGKILL'));
  const allLogs = (): string => logs.map((read) => read()).join('');
  return {
    settings,
    get pid() {
      return program.pid;
    },
    log: allLogs,
    changes: async () => {
      await waitForMark(settings.admin, allLogs);
      return changesIn(allLogs());
    },
    root: () => readRoot(directory) ?? '',
    fetch: (domain, path = '/', fetchOptions = {}) =>
      fetchHttps(settings.httpsPort, domain, path, { ca: readRoot(directory), ...fetchOptions }),
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    restart: async () => {
      await end('SIGTERM');
      ({ program, log } = await run(directory, settings.admin, options));
      logs.push(log);
    },
  };
}

async function run(
  directory: string,
  admin: string,
  { resume = false }: CaddyOptions,
): Promise<{ program: Program; log: () => string }> {
  const args = ['run', '--config', join(directory, 'boot.json'), ...(resume ? ['--resume'] : [])];
  const program = startProcess('caddy', args, {
    HOME: directory,
    XDG_DATA_HOME: join(directory, 'data'),
    XDG_CONFIG_HOME: join(directory, 'config'),
  });
  let text = '';
  program.child.stderr.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  await program.waitFor('serving initial configuration').catch(() => {
    throw new Error(`Caddy did not start at ${admin}:\n${text}`);
  });
  return { program, log: () => text };
}

/** Its own authority's root exists once a name needed it. */
function readRoot(directory: string): string | undefined {
  const path = join(directory, 'data/caddy/pki/authorities/local/root.crt');
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

/** What it has logged comes a moment later than its answer: a request of our own is the last of what came before. */
async function waitForMark(admin: string, log: () => string): Promise<void> {
  const mark = `/config/admin?mark=${randomUUID()}`;
  await (await fetch(`${admin}${mark}`)).text();
  while (!log().includes(mark)) await sleep(10);
}

function changesIn(log: string): string[] {
  return log
    .split('\n')
    .filter((line) => line.includes('"received request"'))
    .map((line) => JSON.parse(line) as { method: string; uri: string })
    .filter(({ method }) => method !== 'GET')
    .map(({ method, uri }) => `${method} ${uri}`);
}

type HttpsAnswer = { status: number; body: string };

/** Before the handshake was over: nothing has been sent. */
export class NotConnectedError extends Error {
  readonly code: string | undefined;
  constructor(cause: NodeJS.ErrnoException) {
    super(cause.message, { cause });
    this.code = cause.code;
  }
}

type FetchOptions = {
  method?: string;
  body?: string;
  headers?: Readonly<Record<string, string>>;
  /** Certificates that are trusted beside the public ones' place. */
  ca?: string | undefined;
};

/** One request on a connection of its own, whose certificate must be the domain's. Throws unless something answers. */
function fetchHttps(
  port: number,
  domain: string,
  path: string,
  { method = 'GET', body, headers = {}, ca }: FetchOptions = {},
): Promise<HttpsAnswer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        ...{ host: '127.0.0.1', port, path, method, agent: false, servername: domain },
        headers: { host: domain, ...headers },
        signal: AbortSignal.timeout(requestTimeoutMs),
        ...(ca === undefined ? {} : { ca }),
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
        response.on('error', reject);
      },
    );
    let isConnected = false;
    outgoing.once('socket', (socket) => socket.once('secureConnect', () => (isConnected = true)));
    outgoing.on('error', (error) => reject(isConnected ? error : new NotConnectedError(error)));
    outgoing.end(body);
  });
}

/** A new name has its certificate a moment after the load: asks until it is served. */
export async function fetchOnceServed(caddy: Caddy, domain: string, path = '/'): Promise<HttpsAnswer> {
  const until = performance.now() + startTimeoutMs;
  for (;;) {
    try {
      return await caddy.fetch(domain, path);
    } catch (error) {
      if (performance.now() > until) throw error;
      await sleep(20);
    }
  }
}
