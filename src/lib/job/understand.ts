// What a claim asks for, as typed inputs, or the reason why it cannot be told. Nothing of it is near an engine by then.
import { readImageVariables } from '../config/environment.ts';
import { InputError } from '../errors.ts';
import type { JobClaim } from '../jobs/records.ts';
import type { Understood } from './session.ts';

export async function understandClaim(claim: JobClaim, serverUrl: string): Promise<Understood> {
  if (claim.source === 'adopted') return { kind: 'adopted' };
  // Only here: a job that only has to be told as ended needs none of the schemas.
  const { parseClaimPayload, parseSpec } = await import('../ploy/parse.ts');
  const { planExecution } = await import('../ploy/plan.ts');
  try {
    const payload = parseClaimPayload(claim.payload);
    const spec = parseSpec(payload.spec);
    const execution = planExecution({ payload, spec, serverUrl, nodeEnv: readImageVariables() });
    return { kind: 'work', payload, execution, gatesDisabled: spec.gate.isDisabled };
  } catch (error) {
    if (error instanceof InputError) return { kind: 'refused', reason: error.message };
    throw error;
  }
}
