// What the server has issued, on its way into its files. A token can be exchanged only once: so the whole answer is on disk
// in one file first, and whoever comes after a crash finishes from there.
import { chmod, mkdir, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { JobsConfig } from '../config/config.ts';
import type { BaseContext } from '../context.ts';
import { tokenPath } from '../control-plane/credentials.ts';
import { writeFileAtomic } from '../state/atomic-file.ts';
import { defineDocument, readDocument } from '../state/document.ts';
import { fileError } from '../state/file-error.ts';
import { requireText } from '../state/shape.ts';
import type { Issued } from './exchange.ts';
import { pendingPath } from './presence.ts';

type InstallContext = Pick<BaseContext, 'paths' | 'overrides' | 'clock' | 'log'>;

const issuedDocument = defineDocument<Issued>({
  version: 1,
  parse: (raw) => ({
    key: requireText(raw, 'key'),
    certificate: requireText(raw, 'certificate'),
    caBundle: requireText(raw, 'caBundle'),
    bearerToken: requireText(raw, 'bearerToken'),
  }),
});

/** 0600, and without a previous copy: there is a key in it. */
export async function writePending(ctx: InstallContext, issued: Issued): Promise<void> {
  const text = `${JSON.stringify({ version: issuedDocument.version, ...issued })}\n`;
  await writeFileAtomic(pendingPath(ctx), text);
}

/** Undefined where nothing is on its way. Assumes `bootstrap`. */
export async function readPending(ctx: InstallContext): Promise<Issued | undefined> {
  const read = await readDocument(pendingPath(ctx), issuedDocument, { now: ctx.clock.now(), log: ctx.log });
  return read.kind === 'ok' ? read.value : undefined;
}

/** The certificate comes last of the files. Doing it twice does no harm. */
export async function installIssued(ctx: InstallContext, jobs: JobsConfig, issued: Issued): Promise<void> {
  const { certPath = '', keyPath = '', caPath = '' } = jobs.http.tls;
  const token = tokenPath(ctx);
  for (const path of [caPath, keyPath, certPath, token]) await ensureParent(path);
  await writeFileAtomic(token, `${issued.bearerToken}\n`);
  await writeFileAtomic(caPath, issued.caBundle);
  await writeFileAtomic(keyPath, issued.key);
  await writeFileAtomic(certPath, issued.certificate);
}

/** Once the files are in place and the token is gone. */
export async function dropPending(ctx: Pick<BaseContext, 'paths'>): Promise<void> {
  await rm(pendingPath(ctx), { force: true });
}

/** 0750 as in the original; one that is there keeps its mode. */
async function ensureParent(path: string): Promise<void> {
  const directory = dirname(path);
  if ((await stat(directory).catch(() => undefined)) !== undefined) return;
  try {
    await mkdir(directory, { recursive: true, mode: 0o750 });
    await chmod(directory, 0o750);
  } catch (error) {
    throw fileError('make directory', directory, error);
  }
}
