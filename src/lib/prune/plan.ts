// What can go: ended runs of services that are gone, and images that no container and no desired state refers to, out of those that reeve has run. A state that is
// kept for a rollback counts: an image that was built on the machine could not be fetched again. Pure.
import type { DesiredService } from '../cluster/wire.ts';
import type { ContainerState, ImageSummary } from '../docker/types.ts';

export type PruneFacts = {
  images: readonly ImageSummary[];
  /** Ids and references of the images of every container on the engine, ours or not. */
  usedImages: ReadonlySet<string>;
  /** Of the desired state, and of those before it that are kept. */
  services: readonly Pick<DesiredService, 'image'>[];
  /** Containers of ours. */
  containers: readonly OwnContainer[];
  /** `<project>/<service>` of the present desired state. */
  desiredKeys: ReadonlySet<string>;
  /** References that reeve has run here. Other people's images are none of our business. */
  known: readonly string[];
};

export type OwnContainer = {
  containerId: string;
  name: string;
  /** `<project>/<service>` */
  key: string;
  state: ContainerState;
  /** Of a schedule or a one-off service. */
  isRun: boolean;
};

export type PruneStep =
  | { action: 'removeImage'; reference: string; sizeBytes: number; reason: string }
  | { action: 'removeRun'; container: string; containerId: string; reason: string };

export function planPrune(facts: PruneFacts): PruneStep[] {
  return [...planRuns(facts), ...planImages(facts)];
}

/** The last run of what is desired is kept for whoever asks what became of it. */
function planRuns({ containers, desiredKeys }: PruneFacts): PruneStep[] {
  const ended: readonly ContainerState[] = ['created', 'exited', 'dead'];
  return containers
    .filter(({ isRun, state, key }) => isRun && ended.includes(state) && !desiredKeys.has(key))
    .map(({ name, containerId }) => {
      const reason = 'it has ended, and its service is no longer desired';
      return { action: 'removeRun', container: name, containerId, reason };
    });
}

function planImages(facts: PruneFacts): PruneStep[] {
  const desired = new Set(facts.services.map(({ image }) => normalizeReference(image)));
  const known = new Set(facts.known.map(normalizeReference));
  const steps: Extract<PruneStep, { action: 'removeImage' }>[] = [];
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
