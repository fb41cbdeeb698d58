// A machine that is app and edge at once: containers, HAProxy and Caddy as Debian has them, certificates of Caddy's own
// authority. What people see is asked inside, since nothing of it can be reached from outside.
import { join } from 'node:path';
import type { Host } from './host.ts';
import { type Installed, type Settings, startInstalled } from './installed.ts';
import { buildWebImages } from './web-image.ts';

export const domain = 'web.example.com';
const balancerUrl = 'http://127.0.0.1:7300/';

const runtime = '/opt/reeve/current/runtime/node';
/** Root of Caddy’s own authority. */
export const caFile = '/var/lib/caddy/.local/share/caddy/pki/authorities/local/root.crt';
const programs = join(import.meta.dirname, 'programs');

export type Tunnels = {
  /** How many still bring a word back. */
  countAlive(): Promise<number>;
  end(): Promise<void>;
};

export type EdgeBox = Installed & {
  /** `configure` with the role and what else such a machine needs. */
  configureEdge(cluster?: Readonly<Record<string, unknown>>): Promise<void>;
  /** Makes the machine's web images of these versions. */
  buildImages(...versions: string[]): void;
  /** A page as a browser gets it: by name, over HTTPS, with a certificate that it checks. */
  browse(path?: string, name?: string): Promise<string>;
  /** WebSockets through the edge, all of which have been greeted. */
  startTunnels(count: number): Promise<Tunnels>;
  /** Status of a request to the balancer's socket; a connection that is refused throws. */
  askBalancer(): Promise<string>;
};

/** `balancer` is the machine's choice: HAProxy is installed. It is the caller's to stop. */
export async function startEdgeBox(cluster: Readonly<Record<string, unknown>> = {}): Promise<EdgeBox> {
  const node = await startInstalled({ cluster: settingsOf(cluster) });
  try {
    const { host } = node;
    await host.output(['systemctl', 'enable', '--now', 'caddy.service']);
    await host.sh(`echo 127.0.0.1 ${domain} >>/etc/hosts`);
    await host.copy(join(programs, 'open-tunnels.mjs'), '/root');
    return describeEdgeBox(node);
  } catch (error) {
    node.host.stop();
    throw error;
  }
}

function settingsOf(cluster: Readonly<Record<string, unknown>>): NonNullable<Settings['cluster']> {
  return { role: ['app', 'edge'], caddy: { issuer: 'internal' }, ...cluster };
}

function describeEdgeBox(node: Installed): EdgeBox {
  const { host } = node;
  const curl = ['curl', '-sS', '--max-time', '20'];
  return {
    ...node,
    configureEdge: (cluster = {}) => node.configure({ cluster: settingsOf(cluster) }),
    buildImages: (...versions) => {
      buildWebImages(host.outside('/run/docker.sock'), versions);
    },
    browse: (path = '/', name = domain) =>
      host.output(['curl', '-sS', '--max-time', '5', '--fail', '--cacert', caFile, `https://${name}${path}`]),
    startTunnels: (count) => startTunnels(host, count),
    askBalancer: () => host.output([...curl, '-o', '/dev/null', '-w', '%{http_code}', balancerUrl]),
  };
}

async function startTunnels(host: Host, count: number): Promise<Tunnels> {
  const argv = [runtime, '/root/open-tunnels.mjs', `wss://${domain}/ws`, String(count)];
  const program = host.start(argv, { NODE_EXTRA_CA_CERTS: caFile });
  let said = '';
  program.child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  await program.waitFor(`open ${count}\n`);
  let asked = 0;
  return {
    countAlive: async () => {
      asked += 1;
      program.tell(`word-${asked}`);
      await program.waitFor(`word-${asked} `);
      return Number(new RegExp(`^word-${asked} (\\d+)$`, 'm').exec(said)?.[1]);
    },
    end: async () => {
      program.child.stdin.end();
      await program.ended;
    },
  };
}
