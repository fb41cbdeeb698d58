// What can go: images that no container and no desired state refers to, out of those that reeve has run. A state that is
// kept for a rollback counts: an image that was built on the machine could not be fetched again. Pure.
import type { DesiredService } from '../cluster/wire.ts';
import type { ImageSummary } from '../docker/types.ts';

export type PruneFacts = {
  images: readonly ImageSummary[];
  /** Ids and references of the images of every container on the engine, ours or not. */
  usedImages: ReadonlySet<string>;
  /** Of the desired state, and of those before it that are kept. */
  services: readonly Pick<DesiredService, 'image'>[];
  /** References that reeve has run here. Other people's images are none of our business. */
  known: readonly string[];
};

export type PruneStep = { action: 'removeImage'; reference: string; sizeBytes: number; reason: string };

export function planPrune(facts: PruneFacts): PruneStep[] {
  const desired = new Set(facts.services.map(({ image }) => normalizeReference(image)));
  const known = new Set(facts.known.map(normalizeReference));
  const steps: PruneStep[] = [];
  for (const image of facts.images) {
    if (facts.usedImages.has(image.id)) continue;
    for (const reference of image.references) {
      const name = normalizeReference(reference);
      if (!known.has(name) || desired.has(name) || facts.usedImages.has(reference)) continue;
      const reason = 'no container, no desired state and no earlier one that is kept refers to it';
      steps.push({ action: 'removeImage', reference, sizeBytes: image.sizeBytes, reason });
    }
  }
  return steps.sort((a, b) => (a.reference < b.reference ? -1 : 1));
}

/** `web` and `web:latest` are one image, and so are Docker Hub's short and long names. */
function normalizeReference(reference: string): string {
  const short = reference.replace(/^docker\.io\/(library\/)?/, '');
  return /[:@][^/]*$/.test(short) ? short : `${short}:latest`;
}
