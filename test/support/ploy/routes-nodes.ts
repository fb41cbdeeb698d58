// What a node tells of itself, what it fetches for its jobs, and how it gets its certificate.
import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { PloyRefusal, requireStorable, requireStorableJson } from './body.ts';
import { type PloyAnswer, type PloyCall, readCall, requireNode, requireRun } from './call.ts';
import { addNode } from './nodes.ts';
import { shapes } from './shapes.ts';

const maxInt32 = 2 ** 31 - 1;

export function answerHeartbeat(call: PloyCall): PloyAnswer {
  const body = readCall(call, shapes.heartbeat);
  for (const [free, total] of [
    [body.cpu_free_millis, body.cpu_total_millis],
    [body.mem_free_bytes, body.mem_total_bytes],
    [body.disk_free_bytes, body.disk_total_bytes],
  ] as const) {
    if (free < 0 || total < 0) throw new PloyRefusal(400, 'invalid request: must be non-negative');
    if (free > total) throw new PloyRefusal(400, 'invalid request: free must be <= total');
  }
  if (body.cpu_total_millis > maxInt32)
    throw new PloyRefusal(400, 'invalid request: cpu millis out of range');
  const { version, ...figures } = body;
  requireStorable(version, 'update heartbeat');
  requireNode(call).heartbeats.push({
    ...figures,
    ...(version === undefined ? {} : { version }),
    atMs: Date.now(),
  });
  return { status: 204 };
}

export function answerDiagnostics(call: PloyCall): PloyAnswer {
  const body = readCall(call, shapes.diagnostics);
  if (body.component !== 'node') throw new PloyRefusal(400, 'invalid component');
  if (!['ok', 'unknown', 'degraded', 'error'].includes(body.status))
    throw new PloyRefusal(400, 'invalid status');
  const node = requireNode(call);
  requireStorable(body, 'upsert node diagnostic');
  requireStorableJson(body.details, 'upsert node diagnostic');
  node.diagnostics.push(body as never);
  return { status: 200, json: { node_id: node.id, ...body, updated_at: new Date().toISOString() } };
}

export function answerDaemonLogs(call: PloyCall): PloyAnswer {
  const { component, stream, lines } = readCall(call, shapes.daemonLogs);
  if (component !== 'node') throw new PloyRefusal(400, 'invalid component');
  if (!['stdout', 'stderr', 'system'].includes(stream)) throw new PloyRefusal(400, 'invalid stream');
  if (lines.length === 0) throw new PloyRefusal(400, 'lines is required');
  if (lines.length > 200) throw new PloyRefusal(400, 'too many log lines');
  const node = requireNode(call);
  if (lines.some((line) => Buffer.byteLength(line) > 16 << 10)) {
    throw new PloyRefusal(400, 'log line exceeds 16384 bytes');
  }
  requireStorable(lines, 'create node daemon log');
  node.daemonLogs.push({ stream, lines });
  return { status: 201, json: { count: lines.length } };
}

/** Only for a node that has a job of the run at work. */
export function answerSnapshot(call: PloyCall): PloyAnswer {
  const { state, ids, nodeId } = call;
  const jobs = requireRun(call, ids[0] ?? '');
  if (!jobs.some((job) => job.status === 'Running' && job.nodeId === nodeId)) {
    throw new PloyRefusal(403, 'node is not assigned current work for this run');
  }
  const snapshot = state.snapshots.get(ids[0] ?? '') ?? state.snapshot;
  if (snapshot === undefined) throw new PloyRefusal(409, 'run is not snapshot-ready');
  const headers = { 'content-type': 'application/gzip', 'x-ploy-repo-sha': snapshot.commitSha };
  return { status: 200, bytes: snapshot.tarGz, headers };
}

export function answerSpecBundle({ state, ids }: PloyCall): PloyAnswer {
  const bytes = state.bundles.get(ids[0] ?? '');
  if (bytes === undefined) throw new PloyRefusal(404, 'spec bundle not found');
  return { status: 200, bytes, headers: { 'content-type': 'application/gzip' } };
}

/** The one route without a client's certificate. A token is good for one exchange and one node. */
export function answerBootstrap(call: PloyCall): PloyAnswer {
  const { state, pki, bearer } = call;
  if (bearer === undefined) throw new PloyRefusal(401, 'missing or invalid Authorization header');
  const token = state.bootstrapTokens.get(bearer);
  if (token === undefined || token.isUsed) throw new PloyRefusal(401, 'token not found or invalid');
  if (token.expiresAtMs < Date.now()) throw new PloyRefusal(401, 'token expired');
  const { csr } = readCall(call, shapes.bootstrap);
  if (pki === undefined) throw new PloyRefusal(503, 'PKI not configured');
  let pem: string;
  try {
    pem = pki.signRequest(csr, `node:${token.nodeId}`);
  } catch (error) {
    throw new PloyRefusal(400, `sign failed: ${(error as Error).message}`);
  }
  if (state.nodes.has(token.nodeId)) throw new PloyRefusal(409, 'node already exists');
  token.isUsed = true;
  addNode(state, token.nodeId);
  const workerToken = randomBytes(24).toString('hex');
  state.tokens.add(workerToken);
  const certificate = new X509Certificate(pem);
  return {
    status: 200,
    json: {
      certificate: pem,
      ca_bundle: readFileSync(pki.ca.cert, 'utf8'),
      serial: certificate.serialNumber,
      fingerprint: createHash('sha256').update(certificate.raw).digest('hex'),
      not_before: new Date(certificate.validFrom).toISOString(),
      not_after: new Date(certificate.validTo).toISOString(),
      bearer_token: workerToken,
    },
  };
}
