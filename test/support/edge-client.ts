// What an edge and the people behind it do: read the routing that a node publishes and send requests to its backends.
import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { UpstreamShard } from '../../src/lib/cluster/wire.ts';

export type Answer = { status: number; body: string };

/** Long enough for a busy machine; what takes longer has failed. */
const requestTimeoutMs = 15_000;

/** One request on a connection of its own. Throws unless something answers. */
export function ask(host: string, port: number, path = '/'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(requestTimeoutMs);
    const request = get({ host, port, path, agent: false, signal }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: body.trim() }));
      response.on('error', reject);
    });
    request.on('error', reject);
  });
}

export type Traffic = {
  /** Answered with 200. */
  served: number;
  failures: string[];
  /** How many requests each version answered: the second word of the body, as in `web v1 on 0123`. */
  versions: Record<string, number>;
  fewestBackends: number;
  mostBackends: number;
};

export type TrafficOptions = {
  readShard: () => UpstreamShard;
  perSecond: number;
  /** How long a routing is believed before it is read again. 0: read for each request. */
  pollMs: number;
};

export type RunningTraffic = {
  readonly traffic: Traffic;
  /** Ends it, and waits for the requests under way. */
  stop(): Promise<Traffic>;
};

/** Sends requests round robin to the backends of the routing until it is stopped. */
export function startTraffic(options: TrafficOptions): RunningTraffic {
  const traffic: Traffic = {
    served: 0,
    failures: [],
    versions: {},
    fewestBackends: Infinity,
    mostBackends: 0,
  };
  const underWay = new Set<Promise<void>>();
  const ending = new AbortController();
  const done = run(options, traffic, underWay, ending.signal);
  return {
    traffic,
    stop: async () => {
      ending.abort();
      await done;
      await Promise.all(underWay);
      return traffic;
    },
  };
}

async function run(
  { readShard, perSecond, pollMs }: TrafficOptions,
  traffic: Traffic,
  underWay: Set<Promise<void>>,
  ending: AbortSignal,
): Promise<void> {
  const startedAt = performance.now();
  let shard = readShard();
  let readAt = startedAt;
  for (let sent = 0; !ending.aborted; ) {
    const now = performance.now();
    if (now - readAt >= pollMs) {
      shard = readShard();
      readAt = now;
    }
    traffic.fewestBackends = Math.min(traffic.fewestBackends, shard.backends.length);
    traffic.mostBackends = Math.max(traffic.mostBackends, shard.backends.length);
    for (const due = ((now - startedAt) / 1000) * perSecond; sent < due; sent += 1) {
      const request = sendOne(shard, sent, traffic);
      underWay.add(request);
      void request.finally(() => underWay.delete(request));
    }
    await sleep(1000 / perSecond);
  }
}

async function sendOne(shard: UpstreamShard, sent: number, traffic: Traffic): Promise<void> {
  const backend = shard.backends[sent % Math.max(1, shard.backends.length)];
  if (backend === undefined) {
    traffic.failures.push('no backend');
    return;
  }
  try {
    const { status, body } = await ask(shard.privateIp, backend.hostPort);
    if (status !== 200) throw new Error(`status ${status}: ${body}`);
    traffic.served += 1;
    const version = body.split(' ')[1] ?? '?';
    traffic.versions[version] = (traffic.versions[version] ?? 0) + 1;
  } catch (error) {
    traffic.failures.push(`${new Date().toISOString()} ${backend.hostPort}: ${String(error)}`);
  }
}
