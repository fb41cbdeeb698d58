// `reeve config schema`: the JSON Schema of reeve.yaml, for editors.
import { buildJsonSchema } from '../lib/config/schema.ts';
import type { Outcome } from '../lib/outcome.ts';

export function run(): Promise<Outcome> {
  const schema = buildJsonSchema();
  return Promise.resolve({
    outcome: 'done',
    text: [JSON.stringify(schema, null, 2)],
    data: { schema },
  });
}
