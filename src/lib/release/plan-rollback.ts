// What a rollback makes of one node's desired state: the definition that an earlier deploy had. Pure.
import { serviceSchema } from '../cluster/schema.ts';
import type { DesiredService } from '../cluster/wire.ts';
import { definitionText, findDifferences } from './compare.ts';
import { type NodePlan, restartAtOf, toChange, withRestartAt } from './plan.ts';
import { type RawDesired, type RawService, renderService } from './raw-document.ts';

/** An earlier desired state of the node, with the instant it was published. */
export type EarlierDeploy = { updatedAt: string; services: readonly RawService[] };

export type EarlierDefinition = { updatedAt: string; definition: DesiredService };

/**
 * The definition that differed last but (to - 1) from the present one: each definition counts once, and a restart is none.
 * Undefined where there are not that many. `earlier` is newest first.
 */
export function findEarlier(
  present: RawService,
  earlier: readonly EarlierDeploy[],
  to: number,
): EarlierDefinition | undefined {
  const seen = new Set([definitionText(present.value)]);
  let left = to;
  for (const { updatedAt, services } of earlier) {
    const parsed = serviceSchema.safeParse(services.find(({ key }) => key === present.key)?.value);
    if (!parsed.success) continue;
    const text = definitionText(parsed.data);
    if (seen.has(text)) continue;
    seen.add(text);
    left--;
    if (left === 0) return { updatedAt, definition: parsed.data };
  }
  return undefined;
}

/** The present restart is kept: going back is no reason to forget it, and forgetting it would replace one container more. */
export function planRollback(document: RawDesired, key: string, definition: DesiredService): NodePlan {
  const present = document.services.find((service) => service.key === key);
  if (present === undefined) return { services: document.services, changes: [] };
  const restartAt = restartAtOf(present.value);
  const target = restartAt === undefined ? definition : withRestartAt(definition, restartAt);
  const fields = findDifferences(present.value, target);
  if (fields.length === 0) return { services: document.services, changes: [] };
  const services = document.services.map((service) =>
    service.key === key ? renderService(target) : service,
  );
  return { services, changes: [toChange('change', key, fields)] };
}
