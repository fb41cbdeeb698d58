// Every route of ploy's server that a node calls, with the size of the body that it takes.
import { maxBodyBytes, maxIngestBodyBytes } from './body.ts';
import type { PloyAnswer, PloyCall } from './call.ts';
import type { PloyRoute } from './model.ts';
import { answerClaim, answerComplete, answerImage, answerSbom, answerStatus } from './routes-jobs.ts';
import {
  answerBootstrap,
  answerDaemonLogs,
  answerDiagnostics,
  answerHeartbeat,
  answerSnapshot,
  answerSpecBundle,
} from './routes-nodes.ts';
import { answerArtifact, answerDiff, answerEvents, answerJobLogs, answerLogs } from './routes-uploads.ts';

type Row = {
  route: PloyRoute;
  method: 'GET' | 'POST';
  pattern: RegExp;
  maxBytes: number;
  answer: (call: PloyCall) => PloyAnswer;
};

const post = (route: PloyRoute, path: string, answer: Row['answer'], maxBytes = maxBodyBytes): Row => ({
  ...{ route, answer, maxBytes, method: 'POST' },
  pattern: compile(path),
});

const get = (route: PloyRoute, path: string, answer: Row['answer']): Row => ({
  ...{ route, answer, maxBytes: maxBodyBytes, method: 'GET' },
  pattern: compile(path),
});

function compile(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('*', '([^/]+)')}$`);
}

const rows: readonly Row[] = [
  post('claim', '/v1/nodes/*/claim', answerClaim),
  get('status', '/v1/jobs/*/status', answerStatus),
  post('logs', '/v1/nodes/*/logs', answerLogs, maxIngestBodyBytes),
  post('complete', '/v1/jobs/*/complete', answerComplete),
  post('heartbeat', '/v1/nodes/*/heartbeat', answerHeartbeat),
  post('events', '/v1/nodes/*/events', answerEvents),
  post('image', '/v1/jobs/*/image', answerImage),
  post('diff', '/v1/runs/*/jobs/*/diff', answerDiff, maxIngestBodyBytes),
  post('artifact', '/v1/runs/*/jobs/*/artifact', answerArtifact, maxIngestBodyBytes),
  get('snapshot', '/v1/runs/*/snapshot', answerSnapshot),
  get('spec-bundle', '/v1/spec-bundles/*', answerSpecBundle),
  post('job-logs', '/v1/jobs/*/logs', answerJobLogs, maxIngestBodyBytes),
  post('sbom', '/v1/jobs/*/sbom', answerSbom, maxIngestBodyBytes),
  post('diagnostics', '/v1/nodes/*/diagnostics', answerDiagnostics),
  post('daemon-logs', '/v1/nodes/*/daemon-logs', answerDaemonLogs),
  post('bootstrap', '/v1/pki/bootstrap', answerBootstrap),
];

export type FoundRoute = { row: Row; ids: string[] };

/** 405 where the path is another method's, undefined where there is none. */
export function findRoute(method: string, path: string): FoundRoute | 'method' | undefined {
  let isKnown = false;
  for (const row of rows) {
    const match = row.pattern.exec(path);
    if (match === null) continue;
    isKnown = true;
    if (row.method === method) return { row, ids: match.slice(1).map(decodeURIComponent) };
  }
  return isKnown ? 'method' : undefined;
}
