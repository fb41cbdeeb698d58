// What the node asks of ploy's server, one method a request. client.ts sends it; nothing here knows what for.
import type { Readable } from 'node:stream';
import { UnavailableError } from '../errors.ts';
import { isPassingStatus } from '../http/retry.ts';
import type { SbomPackage } from '../ploy/sbom.ts';
import type { CompletionBody, DiagnosticsBody, DiffSummary, HeartbeatBody, RunEvent } from '../ploy/wire.ts';

/** A request that was not answered with success. Whoever sends decides by `status` what that means. */
export class ControlPlaneError extends UnavailableError {
  /** Absent where no whole answer came: refused, reset, too late. It may have been done all the same. */
  readonly status: number | undefined;
  /** The server's own words, JSON or plain text, shortened. */
  readonly answer: string;

  constructor(message: string, about: { status?: number; answer?: string; cause?: unknown }) {
    super(message, { cause: about.cause, code: 'control-plane' });
    this.status = about.status;
    this.answer = about.answer ?? '';
  }

  /** No answer, the server's own trouble, or what it never says itself, as a redirection: worth trying again. */
  get isTransient(): boolean {
    const { status } = this;
    return status === undefined || status < 400 || status >= 500 || isPassingStatus(status);
  }
}

/** A claim was answered with 200, so that the server may have given a job, and the answer is no JSON. `text` is all of it. */
export class UnreadableClaimError extends ControlPlaneError {
  readonly text: string;

  constructor(text: string, cause: unknown) {
    super('cannot claim a job: the answer is no JSON', { status: 200, cause });
    this.text = text;
  }
}

export type LogChunk = { runId: string; jobId: string; chunkNo: number; gzip: Uint8Array };

/** All throw ControlPlaneError; all end with the context's signal where `complete` does not. */
export type ControlPlane = {
  /** Reads who we are while something else is waited for. What is wrong with it is told by the first request. */
  prepare(): void;
  /** The raw payload, undefined where there is no work (204). */
  claim(): Promise<unknown>;
  /** The status of a job in the server's word. */
  fetchJobStatus(jobId: string): Promise<string>;
  /** One attempt, with 10 s of its own: a shutdown does not lose it. */
  complete(jobId: string, body: CompletionBody): Promise<void>;
  uploadLogs(chunk: LogChunk): Promise<void>;
  sendEvents(runId: string, events: readonly RunEvent[]): Promise<void>;
  uploadDiff(about: { runId: string; jobId: string; gzip: Uint8Array; summary: DiffSummary }): Promise<void>;
  uploadArtifact(about: { runId: string; jobId: string; tarGz: Uint8Array; name: string }): Promise<void>;
  saveImage(jobId: string, image: string): Promise<void>;
  /** Of a gate: takes the place of what was there. */
  saveSbom(jobId: string, packages: readonly SbomPackage[]): Promise<void>;
  /** A tar.gz as it comes. */
  fetchSnapshot(runId: string): Promise<Readable>;
  fetchSpecBundle(bundleId: string): Promise<Readable>;
  sendHeartbeat(body: HeartbeatBody, timeoutMs: number): Promise<void>;
  sendDiagnostics(body: DiagnosticsBody): Promise<void>;
  /** Ends kept connections, so that the process can exit. */
  close(): void;
};
