// The parameter store of AWS Systems Manager as far as reeve speaks to it: GetParameters with AWS's limits.
import { type JsonService, Refusal, requireFields, startJsonService } from './json-service.ts';

export type SsmServer = JsonService & {
  readonly parameters: Map<string, string>;
  /** Of parameters that the caller may not read, with the message that AWS has for it. */
  readonly denied: Map<string, string>;
};

const isNames = (value: unknown): boolean =>
  Array.isArray(value) && value.every((name) => typeof name === 'string');

export async function startSsm(region = 'us-east-1'): Promise<SsmServer> {
  const parameters = new Map<string, string>();
  const denied = new Map<string, string>();
  const getParameters = (input: Readonly<Record<string, unknown>>): unknown => {
    requireFields(input, { Names: isNames, WithDecryption: (value) => typeof value === 'boolean' });
    const names = (input['Names'] ?? []) as string[];
    checkNames(names);
    for (const name of names) {
      const message = denied.get(name);
      if (message !== undefined) throw new Refusal('AccessDeniedException', message);
    }
    const isEncrypted = input['WithDecryption'] !== true;
    return {
      Parameters: names.flatMap((name) => describeParameter(name, parameters.get(name), isEncrypted)),
      InvalidParameters: names.filter((name) => !parameters.has(name)),
    };
  };
  const operations = { GetParameters: getParameters };
  const service = await startJsonService({ service: 'ssm', target: 'AmazonSSM', region, operations });
  return Object.assign(service, { parameters, denied });
}

function checkNames(names: readonly string[]): void {
  const detect = (what: string): never => {
    throw new Refusal('ValidationException', `1 validation error detected: Value at 'names' ${what}`);
  };
  if (names.length < 1 || names.length > 10) detect('failed to satisfy constraint: between 1 and 10 members');
  if (new Set(names).size !== names.length) detect('has duplicates');
  if (names.some((name) => !/^\/?[\w.-]+(\/[\w.-]+)*(:[\w.-]+)?$/.test(name))) detect('is no parameter name');
}

function describeParameter(name: string, value: string | undefined, isEncrypted: boolean): object[] {
  if (value === undefined) return [];
  const [path, selector] = name.split(':');
  const parameter = { Name: path, Type: 'SecureString', Version: 1, DataType: 'text' };
  const shown = isEncrypted ? Buffer.from(value).toString('base64') : value;
  return [{ ...parameter, ...(selector === undefined ? {} : { Selector: `:${selector}` }), Value: shown }];
}
