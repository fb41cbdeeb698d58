// What comes of jobs: chunks of their logs, events, diffs and bundles.
import { createHash, randomUUID } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import type { LogFrame } from '../../../src/lib/ploy/wire.ts';
import { PloyRefusal, parseBody, requireContent, requireStorable, requireStorableJson } from './body.ts';
import {
  type PloyAnswer,
  type PloyCall,
  readCall,
  requireJob,
  requireJobOfRun,
  requireNode,
  requireRun,
} from './call.ts';
import type { PloyJob, PloyState, StoredChunk } from './model.ts';
import { shapes } from './shapes.ts';

const maxFrameBytes = 256 << 10;
let rows = 0;

export function answerLogs(call: PloyCall): PloyAnswer {
  const { run_id: runId, job_id: jobId, chunk_no: chunkNo, data } = readCall(call, shapes.logs);
  if (runId === '') throw new PloyRefusal(400, 'run_id is required');
  requireContent(data, 'data');
  requireNode(call);
  // A chunk without a job is nobody's here: no node of ours sends one.
  if (!jobId) throw new PloyRefusal(400, 'job_id is required');
  requireRow(() => requireRun(call, runId), 'create log', 'logs_run_id_fkey');
  const job = requireRow(() => requireJob(call, jobId), 'create log', 'logs_job_id_fkey');
  if (job.payload.id !== runId) throw new PloyRefusal(400, 'job does not belong to run');
  if (job.nodeId !== call.nodeId) call.state.violations.push(`log of ${jobId}, which is not of this node`);
  return storeChunk(call.state, job, chunkNo, data);
}

/** These routes do not look for runs and jobs: the database does, and what it says is the server's own trouble. */
function requireRow<T>(require: () => T, what: string, constraint: string): T {
  try {
    return require();
  } catch (error) {
    if (!(error instanceof PloyRefusal) || error.status !== 404) throw error;
    const cause = `ERROR: insert violates foreign key constraint "${constraint}" (SQLSTATE 23503)`;
    throw new PloyRefusal(500, `failed to ${what}: ${cause}`);
  }
}

export function answerJobLogs(call: PloyCall): PloyAnswer {
  const job = requireJob(call, call.ids[0] ?? '');
  const { chunk_no: chunkNo, data } = readCall(call, shapes.jobLogs);
  return storeChunk(call.state, job, chunkNo, requireContent(data, 'data'));
}

function storeChunk(state: PloyState, job: PloyJob, chunkNo: number, gzip: Buffer): PloyAnswer {
  const about = `chunk ${chunkNo} of ${job.payload.job_id}`;
  const decoded = unzip(state, job, gzip);
  const sha256 = hashBytes(decoded);
  noteContent(state, job, chunkNo, sha256);
  const before = job.chunks.get(chunkNo);
  if (before !== undefined) {
    job.repeatedChunks += 1;
    const cause =
      'ERROR: duplicate key value violates unique constraint "logs_run_job_chunk_uniq" (SQLSTATE 23505)';
    throw new PloyRefusal(500, `failed to create log: ${cause}`);
  }
  if (chunkNo < 0) state.violations.push(`${about} has a negative number`);
  const kept = [...job.chunks.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  const isKept = kept + decoded.length <= state.keptLogBytes;
  const frames = isKept ? parseFrames(state, about, decoded) : undefined;
  const { length: bytes } = decoded;
  const chunk: StoredChunk = { chunkNo, atMs: Date.now(), gzipBytes: gzip.length, sha256, bytes, frames };
  job.chunks.set(chunkNo, chunk);
  countLines(job, decoded, frames);
  rows += 1;
  return { status: 201, json: { id: rows, chunk_no: chunkNo } };
}

/** The server itself stores what it is given; whoever reads it later would fail. */
function unzip(state: PloyState, { payload }: PloyJob, gzip: Buffer): Buffer {
  try {
    return gunzipSync(gzip);
  } catch {
    state.violations.push(`an upload of ${payload.job_id} is no gzip`);
    return Buffer.alloc(0);
  }
}

function hashBytes(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Of a request that is not let through: what is sent under a number is to be the same for ever. */
export function noteChunk(state: PloyState, body: Buffer): void {
  const { job_id: jobId, chunk_no: chunkNo, data } = parseBody(shapes.logs, body);
  const job = state.jobs.get(jobId ?? '');
  if (job !== undefined) noteContent(state, job, chunkNo, hashBytes(unzip(state, job, data)));
}

function noteContent(state: PloyState, job: PloyJob, chunkNo: number, sha256: string): void {
  const hashes = job.sentChunks.get(chunkNo) ?? new Set<string>();
  if (hashes.size > 0 && !hashes.has(sha256)) {
    state.violations.push(`chunk ${chunkNo} of ${job.payload.job_id} came again with other content`);
  }
  job.sentChunks.set(chunkNo, hashes.add(sha256));
}

function parseFrames(state: PloyState, about: string, decoded: Buffer): LogFrame[] {
  const text = decoded.toString('utf8');
  if (!text.endsWith('\n')) state.violations.push(`${about} does not end with a line`);
  const frames: LogFrame[] = [];
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const wrong = findFault(line, frames);
    if (wrong !== undefined) state.violations.push(`${about}: ${wrong}: ${line.slice(0, 80)}`);
  }
  return frames;
}

function findFault(text: string, frames: LogFrame[]): string | undefined {
  if (Buffer.byteLength(text) > maxFrameBytes) return 'a frame of more than 256 KiB';
  let frame: LogFrame;
  try {
    frame = JSON.parse(text) as LogFrame;
  } catch {
    return 'no JSON';
  }
  frames.push(frame);
  if (Object.keys(frame).sort().join() !== 'line,stream') return 'other fields than stream and line';
  if (frame.stream !== 'stdout' && frame.stream !== 'stderr') return 'an unknown stream';
  if (typeof frame.line !== 'string' || frame.line === '') return 'an empty line';
  return frame.line.endsWith('\r') ? 'a carriage return' : undefined;
}

function countLines(job: PloyJob, decoded: Buffer, frames: readonly LogFrame[] | undefined): void {
  if (frames !== undefined) {
    for (const { stream } of frames) job.lines[stream] += 1;
    return;
  }
  for (let at = decoded.indexOf(10); at >= 0; at = decoded.indexOf(10, at + 1)) job.lines.stdout += 1;
}

export function answerEvents(call: PloyCall): PloyAnswer {
  const { run_id: runId, events } = readCall(call, shapes.events);
  if (runId === '') throw new PloyRefusal(400, 'run_id is required');
  if (events.length === 0) throw new PloyRefusal(400, 'events array is required and must not be empty');
  requireNode(call);
  // One after another: what came before a wrong one stays.
  for (const [index, event] of events.entries()) {
    checkEvent(event, `events[${index}]`);
    requireRow(() => requireRun(call, runId), 'create event', 'events_run_id_fkey');
    const job = event.job_id
      ? requireRow(() => requireJob(call, event.job_id ?? ''), 'create event', 'events_job_id_fkey')
      : undefined;
    requireStorable(event, 'create event');
    if (job !== undefined) job.events.push(event as never);
    else call.state.runEvents.push({ runId, event: event as never });
  }
  return { status: 201, json: { count: events.length } };
}

function checkEvent(
  event: { level: string; message: string; time?: string | null | undefined },
  about: string,
): void {
  if (event.level.trim() === '') throw new PloyRefusal(400, `${about}: level is required`);
  if (event.message.trim() === '') throw new PloyRefusal(400, `${about}: message is required`);
  if (event.time && Number.isNaN(Date.parse(event.time)))
    throw new PloyRefusal(400, `${about}: invalid time`);
}

export function answerDiff(call: PloyCall): PloyAnswer {
  const { patch, summary } = readCall(call, shapes.diff);
  requireContent(patch, 'patch');
  const job = requireJobOfRun(call);
  requireStorableJson(summary, 'create diff');
  job.diffs.push({ patch: unzip(call.state, job, patch).toString('utf8'), summary, atMs: Date.now() });
  return { status: 201, json: { diff_id: randomUUID() } };
}

export function answerArtifact(call: PloyCall): PloyAnswer {
  const { bundle, name } = readCall(call, shapes.artifact);
  requireContent(bundle, 'bundle');
  const job = requireJobOfRun(call);
  requireStorable(name, 'create artifact bundle');
  job.artifacts.push({ name: name ?? undefined, tarGz: bundle, atMs: Date.now() });
  const digest = createHash('sha256').update(bundle).digest('hex');
  return {
    status: 201,
    json: {
      artifact_bundle_id: randomUUID(),
      cid: `bafy${digest.slice(0, 32)}`,
      digest: `sha256:${digest}`,
    },
  };
}
