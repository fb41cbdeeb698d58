// What stands there of a node's certificate, without a look into it.
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { JobsConfig } from '../config/config.ts';
import type { BaseContext } from '../context.ts';
import { bootstrapTokenFile } from '../ploy/names.ts';

/** Certificate and key are there, and no other ones are on their way. */
export async function isInPlace(ctx: Pick<BaseContext, 'paths'>, jobs: JobsConfig): Promise<boolean> {
  return (await hasCertificate(jobs)) && !(await exists(pendingPath(ctx)));
}

export async function hasCertificate({ http: { tls } }: JobsConfig): Promise<boolean> {
  const [cert, key] = await Promise.all([tls.certPath, tls.keyPath].map((path) => exists(path ?? '')));
  return cert === true && key === true;
}

export function bootstrapToken({ overrides }: Pick<BaseContext, 'overrides'>): string {
  return overrides.PLOY_BOOTSTRAP_TOKEN_PATH ?? bootstrapTokenFile;
}

export function pendingPath({ paths }: Pick<BaseContext, 'paths'>): string {
  return join(paths.stateDir, 'bootstrap.json');
}

export async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}
