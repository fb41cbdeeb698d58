// The routes about instances, served in this process with the words of refusals that nodes have; and instances to be asked.
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { instanceRoutes } from '../../../src/lib/api-commands/instances.ts';
import type { CommandsConfig } from '../../../src/lib/config/config.ts';
import { type Paths, resolvePaths } from '../../../src/lib/config/paths.ts';
import type { Context } from '../../../src/lib/context.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { onTestFinished } from '../after-test.ts';
import { type ApiAnswer, type ApiCall, callApi } from '../api-node.ts';
import { freePort } from '../ports.ts';
import { type ServedRoutes, serveRoutes } from '../served-routes.ts';
import { makeTempDir } from '../temp.ts';

export type InstanceApi = {
  readonly root: string;
  readonly paths: Paths;
  readonly served: ServedRoutes;
  call(path: string, call?: ApiCall): Promise<ApiAnswer>;
};

export async function serveInstances(
  commands: Partial<CommandsConfig> = {},
  about: { paths?: Paths } = {},
): Promise<InstanceApi> {
  const root = makeTempDir();
  const at = (name: string): string => join(root, name);
  const paths =
    about.paths ??
    resolvePaths({}, { REEVE_STATE: at('state'), REEVE_RUN: at('run'), REEVE_CACHE: at('cache') });
  const section = { proxyBackendHost: '127.0.0.1', ...commands } as CommandsConfig;
  const ctx: Context = {
    ...{ paths, runId: 'test', command: 'api commands', overrides: {}, clock: systemClock },
    ...{ log: silentLog, signal: new AbortController().signal, interactive: false },
    config: { commands: section, hooks: {}, warnings: [] },
  };
  const served = await serveRoutes({
    routes: instanceRoutes(ctx),
    renderError: (message) => ({ error: message }),
  });
  return {
    root,
    paths,
    served,
    call: (path, call = {}) => callApi(served.port, undefined, { path, ...call }),
  };
}

export type Instance = {
  readonly port: number;
  /** Request lines and what came with them, oldest first. */
  readonly asked: { line: string; headers: Readonly<Record<string, unknown>> }[];
  stop(): Promise<void>;
};

/** A program of this machine that is asked; `answer` says what it does. */
export async function startInstance(
  answer: RequestListener,
  { host = '127.0.0.1', tls }: { host?: string; tls?: { cert: string; key: string } } = {},
): Promise<Instance> {
  const asked: Instance['asked'] = [];
  const listener: RequestListener = (request, response) => {
    const { method, url, httpVersion, headers } = request;
    asked.push({ line: `${method} ${url} HTTP/${httpVersion}`, headers });
    answer(request, response);
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  // Not one that the kernel gives to clients as well: nobody is to be there once it is stopped.
  const at = await freePort();
  await new Promise<void>((resolve) => server.listen(at, host, resolve));
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  onTestFinished(stop);
  return { port: (server.address() as AddressInfo).port, asked, stop };
}
