// The stamp that a container carries of what it was configured with. Another stamp means another container.
import { canonicalJson, compareBytewise } from './canonical.ts';
import type { DesiredService } from './wire.ts';

type Stamped = Pick<DesiredService, 'env' | 'restartAt' | 'secretRefs' | 'volumes'>;

/**
 * Canonical JSON of env, restartAt, secretRefs and, where there are any, volumes. The text itself is the stamp, equal to the
 * one launch-pad's agent writes: taking over a running container changes nothing.
 */
export function configStamp(service: Stamped): string {
  const secretRefs = sortByName(service.secretRefs.map(({ name, ssm }) => ({ name, ssm })));
  const volumes = sortByName(service.volumes.map(({ name, path }) => ({ name, path })));
  return canonicalJson({
    env: service.env,
    restartAt: service.restartAt ?? null,
    secretRefs,
    volumes: volumes.length === 0 ? undefined : volumes,
  });
}

function sortByName<Named extends { name: string }>(named: readonly Named[]): Named[] {
  return named.toSorted((left, right) => compareBytewise(left.name, right.name));
}
