// The composition root's value: what every effect needs, made once per process by main.ts.
import type { Config } from './config/config.ts';
import type { Overrides } from './config/environment.ts';
import type { Paths } from './config/paths.ts';
import type { Log } from './report/log.ts';
import type { Clock } from './time.ts';

/** What is there before the configuration has been read. */
export type BaseContext = {
  readonly runId: string;
  /** The command as typed, `config check`. */
  readonly command: string;
  readonly paths: Paths;
  readonly overrides: Overrides;
  readonly clock: Clock;
  readonly log: Log;
  /** Aborts on SIGTERM and SIGINT: finish the running step, then stop. */
  readonly signal: AbortSignal;
  /** A person at a terminal can be asked. */
  readonly interactive: boolean;
};

export type Context = BaseContext & { readonly config: Config };
