// Registry credentials from `<dir>/config.json` in docker's own format, read anew for each pull. Never from a home directory,
// never through a helper program. Nothing of the file's content appears in a message.
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError, describeError, InternalError, systemErrorCode } from '../errors.ts';

export type RegistryCredentials = {
  /** The value of X-Registry-Auth. */
  header: string;
  /** What must not be shown. */
  secrets: readonly string[];
};

type RawRecord = Readonly<Record<string, unknown>>;

/** Docker Hub has one name in references and others in configuration files. */
const hubNames = ['docker.io', 'index.docker.io', 'registry-1.docker.io'];
const hubAddress = 'https://index.docker.io/v1/';

/** Undefined where the file is missing or says nothing of the registry. Throws ConfigError for a file that is wrong. */
export function readRegistryCredentials(dir: string, registry: string): RegistryCredentials | undefined {
  return readCredentialsFile(join(dir, 'config.json'), registry);
}

/** The same of a file under any name. */
export function readCredentialsFile(path: string, registry: string): RegistryCredentials | undefined {
  const text = readPrivateFile(path);
  if (text === undefined) return undefined;
  const config = parseConfig(text, path);
  const found = Object.entries(toRecord(config['auths'])).find(([key]) => isRegistry(key, registry));
  if (found !== undefined) return buildCredentials(toRecord(found[1]), registry, path);
  if (Object.keys(toRecord(config['credHelpers'])).some((key) => isRegistry(key, registry))) {
    throw new ConfigError(
      `cannot use "${path}": it names a credential helper for ${registry}, and helpers are not run; write the credentials under "auths"`,
    );
  }
  return undefined;
}

function readPrivateFile(path: string): string | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(path, 'r');
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new ConfigError(`cannot read "${path}": ${code ?? describeError(error)}`, { cause: error });
  }
  try {
    // The open file is looked at, so that it cannot be another one by the time it is read.
    const mode = fstatSync(descriptor).mode & 0o777;
    if ((mode & 0o077) !== 0) {
      throw new ConfigError(
        `cannot use "${path}": others than its owner may read it (mode ${mode.toString(8).padStart(4, '0')}); chmod 600 it`,
      );
    }
    return readFileSync(descriptor, 'utf8');
  } finally {
    closeSync(descriptor);
  }
}

function parseConfig(text: string, path: string): RawRecord {
  try {
    return toRecord(JSON.parse(text));
  } catch {
    // The parser's message quotes the text: it is not kept as the cause.
    throw new ConfigError(`cannot read "${path}": it is not JSON`);
  }
}

function buildCredentials(entry: RawRecord, registry: string, path: string): RegistryCredentials {
  const serveraddress = hubNames.includes(registry) ? hubAddress : registry;
  const token = toText(entry['identitytoken']);
  if (token !== '') return { header: encode({ identitytoken: token, serveraddress }), secrets: [token] };
  const auth = toText(entry['auth']);
  const { username, password } = parseLogin(auth) ?? {
    username: toText(entry['username']),
    password: toText(entry['password']),
  };
  if (username === '' || password === '') {
    throw new ConfigError(`cannot use "${path}": the entry for ${registry} has no user name and password`);
  }
  const secrets = [password, auth];
  return { header: encode({ username, password, serveraddress }), secrets };
}

/** base64 of `user:password`, which is how ECR hands out tokens. */
export function isLoginToken(raw: unknown): raw is string {
  return typeof raw === 'string' && parseLogin(raw) !== undefined;
}

/** Throws InternalError for what is no login token. */
export function buildTokenCredentials(token: string, registry: string): RegistryCredentials {
  const login = parseLogin(token);
  if (login === undefined) throw new InternalError(`the token for ${registry} is no login`);
  return { header: encode({ ...login, serveraddress: registry }), secrets: [login.password, token] };
}

/** The password may have colons of its own. */
function parseLogin(auth: string): { username: string; password: string } | undefined {
  const login = Buffer.from(auth, 'base64').toString('utf8');
  const colon = login.indexOf(':');
  return colon > 0 ? { username: login.slice(0, colon), password: login.slice(colon + 1) } : undefined;
}

/** The engine decodes with padding and the URL alphabet; Node's `base64url` leaves the padding out. */
function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64').replaceAll('+', '-').replaceAll('/', '_');
}

/** Keys are written `host:port`, with a scheme, with a path, or all of them. */
function isRegistry(key: string, registry: string): boolean {
  const [host = ''] = key.replace(/^https?:\/\//, '').split('/');
  return host === registry || (hubNames.includes(host) && hubNames.includes(registry));
}

function toRecord(raw: unknown): RawRecord {
  return typeof raw === 'object' && raw !== null && !Array.isArray(raw) ? (raw as RawRecord) : {};
}

function toText(raw: unknown): string {
  return typeof raw === 'string' ? raw : '';
}
