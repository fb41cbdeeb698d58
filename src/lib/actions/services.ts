// The services that a checkout lists for a node.
import { realpath } from 'node:fs/promises';
import { servicesFile } from '../deploy-runner/layout.ts';
import { maxServicesBytes, parseServices } from '../deploy-runner/services.ts';
import { StepError } from '../errors.ts';
import { fileError } from '../state/file-error.ts';
import { openEntry } from './open.ts';

/** Throws where it cannot be used. A pipe under its name hangs nobody; links within a checkout are followed. */
export async function readServices(checkout: string, node: string): Promise<ReadonlySet<string>> {
  const path = servicesFile(checkout, node);
  const target = await realpath(path).catch((error: unknown) => {
    throw fileError('read', path, error);
  });
  const opened = await openEntry(target, maxServicesBytes, path);
  if (opened.kind === 'file') return parseServices(opened.bytes.toString('utf8'));
  const reason = opened.kind === 'gone' ? 'it is gone' : opened.reason;
  throw new StepError(`cannot read ${JSON.stringify(path)}: ${reason}`);
}
