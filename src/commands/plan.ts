// `reeve plan`: what `reconcile` would do and why, changing nothing.
import type { Outcome } from '../lib/outcome.ts';
import { renderPlan } from '../lib/reconcile/render.ts';
import { planOnce } from '../lib/reconcile/run.ts';
import type { CommandInput } from './command.ts';

export async function run({ loadContext }: CommandInput): Promise<Outcome> {
  const { facts, plan } = await planOnce(await loadContext(), { allowRemoval: false });
  return renderPlan(facts, plan);
}
