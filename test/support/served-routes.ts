// Routes of an API behind the server that serves them, in this process, on a free port of the loopback.
import { silentLog } from '../../src/lib/report/log.ts';
import { type ServeOptions, serve } from '../../src/lib/server/serve.ts';
import { onTestFinished } from './after-test.ts';

export type ServedRoutes = {
  readonly port: number;
  /** Level and text of each line of its log. */
  readonly lines: readonly string[];
  stop(): Promise<void>;
};

export async function serveRoutes(
  options: Partial<ServeOptions> & Pick<ServeOptions, 'routes'>,
): Promise<ServedRoutes> {
  const controller = new AbortController();
  const lines: string[] = [];
  let found = (_: number): void => {};
  const port = new Promise<number>((resolve) => {
    found = resolve;
  });
  const tell =
    (level: string) =>
    (message: string): void => {
      lines.push(`${level}: ${message}`);
      const [, text] = /^listening on .*:(\d+)(,|$)/.exec(message) ?? [];
      if (text !== undefined) found(Number(text));
    };
  const log = { ...silentLog, info: tell('info'), warning: tell('warning'), error: tell('error') };
  const ended = serve(
    { log, signal: controller.signal },
    {
      target: { handed: false, host: '127.0.0.1', port: 0 },
      certificates: undefined,
      times: { readMs: 10_000, writeMs: 60_000, keepMs: 1_000, idleMs: undefined },
      bodyBytes: 65_536,
      ...options,
    },
  );
  const stop = async (): Promise<void> => {
    controller.abort(new Error('stopped'));
    await ended.catch(() => {});
  };
  onTestFinished(stop);
  ended.catch(() => {});
  return { port: await Promise.race([port, ended.then(() => 0)]), lines, stop };
}
