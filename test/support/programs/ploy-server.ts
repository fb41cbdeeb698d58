// The strict server of ploy as a process of its own, so that what it costs is not counted for whoever is measured.
// Prints one line of JSON: where it is, and where it can be asked and told about its jobs. Ends when its input ends.
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { PloyFault } from '../ploy/faults.ts';
import type { JobOptions } from '../ploy/jobs.ts';
import type { Pki } from '../ploy/pki.ts';
import { type Ploy, startPloy } from '../ploy/server.ts';

export type PloyOrder =
  /** Answered with the ids. */
  | { kind: 'queue'; count: number; options?: JobOptions }
  | { kind: 'cancel'; jobId: string }
  | { kind: 'fault'; fault: PloyFault }
  /** How many jobs there are of each status, how many requests of each route, and what was wrong. */
  | { kind: 'summary' };

/** The certificates' files as the first argument; without it, plain HTTP. */
const [pkiFiles] = process.argv.slice(2);
const pki = pkiFiles === undefined ? {} : { pki: JSON.parse(pkiFiles) as Pki };
const ploy = await startPloy(pki);

function obey(server: Ploy, order: PloyOrder): unknown {
  switch (order.kind) {
    case 'queue':
      return Array.from({ length: order.count }, () => server.queueJob(order.options).payload.job_id);
    case 'cancel':
      server.cancelJob(order.jobId);
      return {};
    case 'fault':
      server.faults.add(order.fault);
      return {};
    case 'summary':
      return {
        jobs: count([...server.state.jobs.values()].map(({ status }) => status)),
        requests: count(server.state.requests.map(({ route = 'none' }) => route)),
        connections: server.connections,
        violations: server.state.violations,
      };
  }
}

function count(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}

async function readOrder(request: IncomingMessage): Promise<PloyOrder> {
  const parts: Buffer[] = [];
  for await (const part of request as AsyncIterable<Buffer>) parts.push(part);
  return JSON.parse(Buffer.concat(parts).toString('utf8')) as PloyOrder;
}

const admin = createServer((request, response) => {
  readOrder(request)
    .then((order) => response.end(JSON.stringify(obey(ploy, order))))
    .catch((error: unknown) => response.writeHead(400).end(String(error)));
});
admin.listen(0, '127.0.0.1', () => {
  const { port } = admin.address() as AddressInfo;
  const { url, token, nodeId } = ploy;
  process.stdout.write(`${JSON.stringify({ url, token, nodeId, adminUrl: `http://127.0.0.1:${port}/` })}\n`);
});
process.stdin.resume().once('end', () => {
  admin.closeAllConnections();
  admin.close();
  ploy.stop().catch(() => undefined);
});
