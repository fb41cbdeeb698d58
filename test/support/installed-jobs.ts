// A machine that runs jobs of the strict server, which is outside of it: it reaches the server at its own loopback, as if it
// were far away, and exchanges a token for a certificate first.
import { readFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { type Host, startHost } from './host.ts';
import { provision } from './installed.ts';
import { joinEnds } from './joined-sockets.ts';
import { createPki, type Pki } from './ploy/pki.ts';
import { type Ploy, startPloy } from './ploy/server.ts';
import type { ProgramEnd } from './programs.ts';
import { makeTempDir } from './temp.ts';

export const nodeId = 'web-1';
const serverPort = 8440;
const pkiDir = '/etc/ploy/pki';

export type InstalledJobs = {
  readonly host: Host;
  readonly ploy: Ploy;
  readonly pki: Pki;
  reeve(...words: string[]): Promise<ProgramEnd>;
  /** The same, and it has to succeed; its stdout. */
  must(...words: string[]): Promise<string>;
  /** Writes reeve.yaml and puts the units in place for it. */
  configure(sections: object): Promise<void>;
  /** A request to the node's own API, as the node itself. */
  call(path: string, body?: object): Promise<{ status: number; text: string }>;
  stop(): Promise<void>;
};

export const jobsSection = {
  server_url: `https://127.0.0.1:${serverPort}`,
  node_id: nodeId,
  concurrency: 2,
  http: {
    listen: ':8444',
    tls: {
      enabled: true,
      cert_path: `${pkiDir}/node.crt`,
      key_path: `${pkiDir}/node.key`,
      ca_path: `${pkiDir}/ca.crt`,
      bootstrap_ca_path: '/etc/reeve/ploy-ca.crt',
    },
  },
  heartbeat: { interval: '2s' },
};

/** Installed and without a configuration. It is the caller's to stop. */
export async function startInstalledJobs(whenFinished: (clean: () => void) => void): Promise<InstalledJobs> {
  const pki = createPki(makeTempDir(whenFinished), nodeId);
  const ploy = await startPloy({ pki, nodeId, bootstrap: true });
  const host = startHost(nodeId);
  const closeBridge = await bridge(join(host.shared, 'ploy.sock'), Number(new URL(ploy.url).port));
  const stop = async (): Promise<void> => {
    host.stop();
    closeBridge();
    await ploy.stop();
  };
  try {
    const directory = await provision(host);
    for (const [file, text] of Object.entries(units)) await host.write(`/etc/systemd/system/${file}`, text);
    await host.output(['systemctl', 'enable', '--now', 'ploy.socket']);
    await host.write('/etc/reeve/ploy-ca.crt', readFileSync(pki.ca.cert, 'utf8'));
    await host.output([`${directory}/scripts/install`]);
  } catch (error) {
    await stop();
    throw error;
  }
  const must: InstalledJobs['must'] = (...words) => host.output(['reeve', ...words]);
  return {
    ...{ host, ploy, pki, must, stop },
    reeve: (...words) => host.run(['reeve', ...words]),
    configure: async (sections) => {
      await host.write('/etc/reeve/reeve.yaml', `${JSON.stringify(sections)}\n`, '0600');
      await must('units', 'render', '--write');
    },
    call: async (path, body) => {
      const text = await host.output(curl(path, body));
      const [, said = '', status = ''] = /^([\s\S]*)\n(\d{3})$/.exec(text) ?? [];
      return { status: Number(status), text: said };
    },
  };
}

const units = {
  'ploy.socket': `[Socket]\nListenStream=127.0.0.1:${serverPort}\n[Install]\nWantedBy=sockets.target\n`,
  'ploy.service': '[Service]\nExecStart=/lib/systemd/systemd-socket-proxyd /srv/shared/ploy.sock\n',
};

function curl(path: string, body: object | undefined): [string, ...string[]] {
  const name = `node-${nodeId}.ploy`;
  return [
    ...([
      'curl',
      '-s',
      '--max-time',
      '60',
      '-w',
      '\n%{http_code}',
      '--resolve',
      `${name}:8444:127.0.0.1`,
    ] as const),
    ...['--cacert', `${pkiDir}/ca.crt`, '--cert', `${pkiDir}/node.crt`, '--key', `${pkiDir}/node.key`],
    ...(body === undefined ? [] : ['-d', JSON.stringify(body)]),
    `https://${name}:8444${path}`,
  ];
}

/** From a socket that both sides see to a port of this side's loopback. */
async function bridge(path: string, port: number): Promise<() => void> {
  const open = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect({ host: '127.0.0.1', port });
    joinEnds(near, far, open);
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return () => {
    server.close();
    for (const socket of open) socket.destroy();
  };
}
