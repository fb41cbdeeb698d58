// Images on this machine: pulled when missing, refreshed when a registry knows them, never asked for when built here.
import type { ImageIdentity } from '../docker/types.ts';
import { describeError } from '../errors.ts';
import type { Session } from './session.ts';

/** Pulls under way, so that two services with one image ask the registry once. */
const pulls = new WeakMap<Session, Map<string, Promise<void>>>();

/** Marks of use younger than this are not worth a write, in milliseconds. */
const usedMarkMs = 24 * 60 * 60_000;

/**
 * Has the image on disk and returns its identity. A tag that cannot be refreshed is served from the copy that is there;
 * an image that is missing and cannot be pulled is an error.
 */
export async function ensureImage(session: Session, reference: string): Promise<ImageIdentity> {
  const local = await session.engine.inspectImage(reference);
  if (local === undefined || isRefreshable(reference, local)) {
    try {
      await pullOnce(session, reference);
    } catch (error) {
      if (local === undefined) throw error;
      session.ctx.log.warning(`using the copy of ${reference} that is here: ${describeError(error)}`);
    }
  }
  await markUsed(session, reference);
  const image = await session.engine.inspectImage(reference);
  return image ?? local ?? { id: reference, digests: [] };
}

/** A digest never changes, and what was built here, also if it was pushed elsewhere since, no registry has by that name. */
function isRefreshable(reference: string, local: ImageIdentity): boolean {
  if (reference.includes('@')) return false;
  return local.digests.some((digest) => repositoryOf(digest) === repositoryOf(reference));
}

/** Without tag and digest; Docker Hub's names have a long and a short form. */
function repositoryOf(reference: string): string {
  const [name = ''] = reference.split('@');
  return name.replace(/:[^:/]*$/, '').replace(/^(index\.)?docker\.io\/(library\/)?/, '');
}

async function pullOnce(session: Session, reference: string): Promise<void> {
  const underWay = pulls.get(session) ?? new Map<string, Promise<void>>();
  pulls.set(session, underWay);
  const known = underWay.get(reference);
  if (known !== undefined) return known;
  session.ctx.log.info(`pulling ${reference}`);
  const told = ({ layer, status }: { layer: string; status: string }): void =>
    session.ctx.log.progress(`pulling ${reference}: ${layer} ${status.toLowerCase()}`);
  const pull = session.engine.pullImage(reference, told).finally(() => underWay.delete(reference));
  underWay.set(reference, pull);
  await pull;
}

async function markUsed(session: Session, reference: string): Promise<void> {
  const now = session.ctx.clock.now();
  await session.images.update((document) => {
    const last = Date.parse(document.references[reference] ?? '1970-01-01');
    if (Math.abs(now.getTime() - last) < usedMarkMs) return document;
    return { references: { ...document.references, [reference]: now.toISOString() } };
  });
}
