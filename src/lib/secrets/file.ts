// Secrets as files, one a secret, for hosts without a parameter store. `/launch-pad/<cluster>/<project>/<service>/<KEY>`
// is `<directory>/<project>/<service>/<KEY>`; any other path is that path below the directory.
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { StepError, systemErrorCode } from '../errors.ts';
import type { SecretRef, SecretSource } from './secrets.ts';

/** The engine takes larger values, but nothing that large is a secret. */
const maxSecretBytes = 1024 * 1024;

export function openFileSecrets(directory: string, { clusterId }: { clusterId: string }): SecretSource {
  return {
    resolve: async (refs) => {
      const found: [string, string][] = [];
      const faults: string[] = [];
      for (const ref of refs) {
        const secret = await readSecret(directory, clusterId, ref);
        if ('fault' in secret) faults.push(secret.fault);
        else found.push([ref.name, secret.value]);
      }
      if (faults.length > 0) {
        throw new StepError(`cannot resolve secrets: ${faults.join('; ')}`, { code: 'secrets' });
      }
      return Object.fromEntries(found);
    },
  };
}

/** Where the secret of a parameter's path is; undefined if the path could lead anywhere else. */
export function secretPath(directory: string, clusterId: string, ssm: string): string | undefined {
  const parts = ssm.replace(/^\//, '').split('/');
  if (!parts.every(isPlainPart)) return undefined;
  const [root, cluster] = parts;
  const isServices = root === 'launch-pad' && cluster === clusterId && parts.length === 5;
  return join(directory, ...(isServices ? parts.slice(2) : parts));
}

function isPlainPart(part: string): boolean {
  return /^[A-Za-z0-9_.-]{1,255}$/.test(part) && part !== '.' && part !== '..';
}

type Secret = { value: string } | { fault: string };

async function readSecret(directory: string, clusterId: string, ref: SecretRef): Promise<Secret> {
  const path = secretPath(directory, clusterId, ref.ssm);
  if (path === undefined) return { fault: `${ref.name} has the path ${JSON.stringify(ref.ssm)}` };
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  let file: FileHandle;
  try {
    file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    return { fault: describeOpenFailure(ref.name, path, systemErrorCode(error)) };
  }
  try {
    return await readValue(file, ref.name, path);
  } catch (error) {
    return { fault: `${ref.name} in ${path} cannot be read (${systemErrorCode(error) ?? 'error'})` };
  } finally {
    await file.close();
  }
}

function describeOpenFailure(name: string, path: string, code: string | undefined): string {
  if (code === 'ENOENT' || code === 'ENOTDIR') return `${name} is missing: there is no ${path}`;
  if (code === 'ELOOP' || code === 'ENXIO') return `${name} in ${path} is not a regular file`;
  return `${name} in ${path} cannot be read (${code ?? 'error'})`;
}

async function readValue(file: FileHandle, name: string, path: string): Promise<Secret> {
  const about = await file.stat();
  if (!about.isFile()) return { fault: `${name} in ${path} is not a regular file` };
  if ((about.mode & 0o077) !== 0) {
    return { fault: `${name} can be read by others: chmod 600 ${path}` };
  }
  if (about.size > maxSecretBytes) return { fault: `${name} in ${path} is larger than 1 MiB` };
  const value = decode(await file.readFile());
  if (value === undefined) return { fault: `${name} in ${path} is not UTF-8 text` };
  if (value.includes('\0')) {
    return { fault: `${name} in ${path} has a NUL, which no environment can carry` };
  }
  // Editors and `echo` end a file with a line break that is not part of the value; more than one is meant.
  return { value: value.endsWith('\n') ? value.slice(0, -1) : value };
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
