// The values behind a service's secret references, resolved when a container is made and never kept by us. One driver
// a place where secrets live. Messages name secrets, never their values.
import { fileURLToPath } from 'node:url';
import { cloudPlaceOf } from '../aws/settings.ts';
import { ConfigError } from '../errors.ts';

export type SecretRef = { name: string; ssm: string };

export type SecretSource = {
  /** The value of each reference by its name. Throws StepError that names all those it cannot give. */
  resolve(refs: readonly SecretRef[]): Promise<Record<string, string>>;
};

export type SecretsOptions = {
  clusterId: string;
  region: string;
  endpoint?: string | undefined;
  signal?: AbortSignal | undefined;
};

/** `file:///directory` or `ssm`; throws ConfigError for anything else. Reaches for nothing yet. */
export async function openSecrets(url: string, options: SecretsOptions): Promise<SecretSource> {
  if (url === 'ssm') {
    const { openSsmSecrets } = await import('./ssm.ts');
    const { clusterId, signal } = options;
    return openSsmSecrets({ clusterId, place: cloudPlaceOf(options), signal });
  }
  if (!/^file:\/\/\//.test(url) || !URL.canParse(url)) {
    throw new ConfigError(
      `cannot open secrets ${JSON.stringify(url)}: secrets are in file:///directory or ssm`,
    );
  }
  const { openFileSecrets } = await import('./file.ts');
  return openFileSecrets(fileURLToPath(url), options);
}

/** A container's environment: what stands in the plain one wins. */
export function mergeEnv(
  plain: Readonly<Record<string, string>>,
  secrets: Readonly<Record<string, string>>,
): Record<string, string> {
  return { ...secrets, ...plain };
}
