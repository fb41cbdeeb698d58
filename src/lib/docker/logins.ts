// What a pull is made with: the credentials in a file, else the machine's role where the registry is one of AWS.
import { join } from 'node:path';
import { buildTokenCredentials, type RegistryCredentials, readCredentialsFile } from './credentials.ts';
import { ecrRegionOf } from './reference.ts';

export type LoginOptions = {
  /** Where `config.json` with registry credentials is, as /etc/reeve/docker. */
  directory: string;
  /** Instead of that one: a file of docker's format under any name. */
  file?: string | undefined;
  /** Where tokens of AWS's registries are kept between runs. */
  tokenFile: string;
  signal?: AbortSignal | undefined;
};

export type Login = RegistryCredentials & {
  /** Completes "the credentials ...". */
  from: string;
  /** Gets new ones, where a refusal of these may be their age's. */
  renew?: () => Promise<Login>;
};

/** Undefined: anonymous. Throws ConfigError for a file that is wrong and UnavailableError where a token cannot be had. */
export async function findLogin(options: LoginOptions, registry: string): Promise<Login | undefined> {
  const file = options.file ?? join(options.directory, 'config.json');
  const written = readCredentialsFile(file, registry);
  if (written !== undefined) return { ...written, from: `in "${file}"` };
  const region = ecrRegionOf(registry);
  return region === undefined ? undefined : await findToken(options, registry, region);
}

async function findToken(
  { tokenFile, signal }: LoginOptions,
  registry: string,
  region: string,
): Promise<Login> {
  // Only here: where no image is on AWS, nothing of its client is loaded.
  const { obtainToken, renewToken } = await import('./ecr.ts');
  const request = { region, file: tokenFile, now: new Date(), signal };
  const { token, renewable } = await obtainToken(request);
  const login = toLogin(token, registry);
  if (!renewable) return login;
  return { ...login, renew: async () => toLogin((await renewToken(request)).token, registry) };
}

function toLogin(token: string, registry: string): Login {
  return { ...buildTokenCredentials(token, registry), from: "of this machine's role" };
}
