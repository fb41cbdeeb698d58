// A machine on which reeve is installed as an operator does it: package, scripts/install, a configuration. What runs there
// from then on is systemd's doing.
import { basename, join, resolve } from 'node:path';
import { inject } from 'vitest';
import type { DesiredDocument, NodeStatus, UpstreamShard } from '../../src/lib/cluster/wire.ts';
import type { RunRecord } from '../../src/lib/state/run-record.ts';
import { type Host, startHost } from './host.ts';
import {
  describeStore,
  type InstalledStore,
  prepareStore,
  storeEnv,
  storeSettings,
} from './installed-store.ts';
import type { ProgramEnd } from './programs.ts';

const scripts = resolve(import.meta.dirname, '../../scripts');
const nodeId = 'web-1';

/** Short, so that what timers do is seen soon. */
export const quickIntervals = { tick: '2s', liveness: '2s', edge: '250ms' };

export type Settings = {
  cluster?: Readonly<Record<string, unknown>>;
  hooks?: Readonly<Record<string, unknown>>;
};

export type Installed = {
  readonly host: Host;
  readonly store: InstalledStore;
  reeve(...words: string[]): Promise<ProgramEnd>;
  /** The same, and it has to succeed; its stdout. */
  must(...words: string[]): Promise<string>;
  /** `init`, with the store. */
  init(): Promise<void>;
  /** Writes reeve.yaml and puts the units in place for it. */
  configure(settings: Settings): Promise<void>;
  /** Deploys services to this node. */
  deploy(services: readonly object[], ...flags: string[]): Promise<void>;
  status(): Promise<NodeStatus>;
  desired(): Promise<DesiredDocument>;
  shard(edge?: string): Promise<UpstreamShard>;
  runOf(concern: string): Promise<RunRecord>;
  /** Waits until the status calls all of its services running with this image; gives the status. */
  settled(image: string, what?: string): Promise<NodeStatus>;
  containers(): Promise<{ id: string; name: string; image: string; startedAt: string }[]>;
  /** The body of a page that a service's replica serves, as somebody on the network sees it. */
  ask(path: string, service?: string, index?: number): Promise<string>;
};

/** Copies the package and the images to a fresh machine: what comes over a network elsewhere. */
export async function provision(host: Host): Promise<string> {
  const file = inject('packageFile');
  await host.copy(file, '/root');
  await host.copy(join(scripts, 'images'), '/root');
  await host.sh(`cd /root && tar -xzf ${basename(file)} && rm ${basename(file)}`);
  await host.output(['/root/images', '/var/run/docker.sock']);
  await prepareStore(host);
  const [directory = ''] = (await host.sh('ls -d /root/reeve-*/')).split('\n');
  return directory.replace(/\/$/, '');
}

/** A machine that runs reeve with the settings. It is the caller's to stop. */
export async function startInstalled(settings: Settings = {}): Promise<Installed> {
  const host = startHost(nodeId);
  try {
    const directory = await provision(host);
    await host.output([`${directory}/scripts/install`]);
    const node = describeInstalled(host);
    await node.init();
    await node.configure(settings);
    return node;
  } catch (error) {
    host.stop();
    throw error;
  }
}

export function describeInstalled(host: Host): Installed {
  const json = async (file: string) => JSON.parse(await host.read(file));
  const store = describeStore(host);
  const stored = async (key: string) => JSON.parse(await store.read(key));
  const options = { env: storeEnv };
  const reeve: Installed['reeve'] = (...words) => host.run(['reeve', ...words], options);
  const must: Installed['must'] = (...words) => host.output(['reeve', ...words], options);
  const status: Installed['status'] = () => stored(`nodes/${nodeId}/status.json`);
  const shard: Installed['shard'] = (edge = 'edge-1') => stored(`nodes/${edge}/upstream/${nodeId}.json`);
  const containers: Installed['containers'] = async () => {
    const ids = await host.sh(`docker ps -q --no-trunc --filter label=launchpad.managed=true`);
    if (ids === '') return [];
    const format = '{{.Id}} {{.Name}} {{.Config.Image}} {{.State.StartedAt}}';
    const text = await host.output(['docker', 'inspect', '-f', format, ...ids.trim().split('\n')]);
    const lines = text.trim().split('\n').sort();
    return lines.map((line) => {
      const [id = '', name = '', image = '', startedAt = ''] = line.split(' ');
      return { id, name: name.slice(1), image, startedAt };
    });
  };
  return {
    ...{ host, store, reeve, must, status, shard },
    init: async () => {
      await must('init', '--node', nodeId, '--store', storeSettings.store);
    },
    configure: async ({ cluster, hooks }) => {
      const text = JSON.stringify({
        cluster: { nodeId, ...storeSettings, ...cluster },
        ...(hooks === undefined ? {} : { hooks }),
      });
      // JSON is YAML.
      await host.write('/etc/reeve/reeve.yaml', `${text}\n`, '0600');
      await must('units', 'render', '--write');
    },
    deploy: async (services, ...flags) => {
      const placed = services.map((service) => ({ project: 'blog', nodes: [nodeId], ...service }));
      await host.write('/root/services.yaml', JSON.stringify({ services: placed }));
      await must('deploy', '/root/services.yaml', '--yes', ...flags);
    },
    desired: () => stored(`nodes/${nodeId}/desired.json`),
    runOf: (concern) => json(`/var/lib/reeve/runs/${concern}.json`),
    settled: (image, what = `replicas of ${image}`) =>
      host.waitFor(what, async () => {
        const current = await status();
        const wanted = current.services.reduce((sum, { desiredReplicas }) => sum + desiredReplicas, 0);
        const replicas = await containers();
        const isSettled =
          current.services.every(({ state, image: running }) => state === 'running' && running === image) &&
          replicas.every(({ image: running }) => running === image);
        return wanted > 0 && replicas.length === wanted && isSettled && current;
      }),
    containers,
    ask: async (path, service = 'blog/web', index = 0) => {
      const { services } = await status();
      const found = services.find(({ project, service: name }) => `${project}/${name}` === service);
      const { privateIp } = await shard();
      const url = `http://${privateIp}:${found?.replicas[index]?.hostPort}${path}`;
      return await host.output(['curl', '-sS', '--fail', '--max-time', '10', url]);
    },
  };
}
