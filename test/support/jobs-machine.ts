// A machine whose configuration has the section `jobs` alone, with its certificates where a node has them.
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from './after-test.ts';
import { type Machine, makeMachine } from './machine.ts';
import { createPki, type Pki } from './ploy/pki.ts';
import { type Ploy, startPloy } from './ploy/server.ts';
import { makeTempDir } from './temp.ts';

export type JobsMachine = Machine & {
  readonly pki: Pki;
  readonly ploy: Ploy;
  readonly env: Readonly<Record<string, string>>;
  readonly files: { cert: string; key: string; ca: string; token: string; bootstrapToken: string };
};

export type JobsMachineOptions = {
  /** No certificate yet: it has to exchange a token. */
  bootstrap?: boolean;
  heartbeat?: { interval?: string; timeout?: string };
  tls?: Readonly<Record<string, unknown>>;
  /** The server's clock. */
  clockAheadMs?: number;
  /** Keys of a section `cluster` beside it. */
  cluster?: Readonly<Record<string, unknown>>;
};

export async function makeJobsMachine(options: JobsMachineOptions = {}): Promise<JobsMachine> {
  const { bootstrap = false, heartbeat = {}, tls = {}, cluster, clockAheadMs = 0 } = options;
  const root = makeTempDir();
  const pki = createPki(root, 'node-1');
  const ploy = await startPloy({ pki, nodeId: 'node-1', bootstrap, clockAheadMs });
  onTestFinished(() => ploy.stop());
  const at = (name: string): string => join(root, 'etc-ploy', name);
  const files = {
    cert: at('pki/node.crt'),
    key: at('pki/node.key'),
    ca: at('pki/ca.crt'),
    token: at('bearer-token'),
    bootstrapToken: at('bootstrap-token'),
  };
  mkdirSync(at(''), { recursive: true });
  const machine = makeMachine({
    ...(cluster === undefined ? {} : { cluster }),
    jobs: {
      server_url: ploy.url,
      node_id: 'node-1',
      heartbeat,
      http: {
        tls: {
          enabled: true,
          cert_path: files.cert,
          key_path: files.key,
          ca_path: files.ca,
          bootstrap_ca_path: pki.ca.cert,
          ...tls,
        },
      },
    },
  });
  const env = { PLOY_NODE_BEARER_TOKEN_PATH: files.token, PLOY_BOOTSTRAP_TOKEN_PATH: files.bootstrapToken };
  if (!bootstrap) {
    mkdirSync(at('pki'));
    copyFileSync(pki.node.cert, files.cert);
    copyFileSync(pki.node.key, files.key);
    copyFileSync(pki.ca.cert, files.ca);
    writeSecret(files.token, ploy.token);
  }
  const start: Machine['start'] = (words, extra = {}) => machine.start(words, { ...env, ...extra });
  return { ...machine, pki, ploy, env, files, start, reeve: (...words) => start(words).ended };
}

export function writeSecret(path: string, text: string): void {
  writeFileSync(path, text, { mode: 0o600 });
}
