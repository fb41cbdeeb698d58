// Certificates as ploy's cluster hands them out, made with openssl: P-256 keys, a node's name in its subject.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export type CertificateFiles = { cert: string; key: string };

export type Pki = {
  readonly directory: string;
  readonly ca: CertificateFiles;
  /** For 127.0.0.1 and localhost. */
  readonly server: CertificateFiles;
  /** Of the node that the authority was made for. */
  readonly node: CertificateFiles;
  /** Of another authority, which nobody trusts. */
  readonly foreign: { ca: CertificateFiles; node: CertificateFiles };
  /** A node certificate of the right authority that has run out. */
  expired(): CertificateFiles;
  issueNode(nodeId: string): CertificateFiles;
  /** Good from and until these days, counted from now. */
  issueDated(nodeId: string, fromDays: number, toDays: number): CertificateFiles;
  /** Another one than `server`, as a renewal gives. */
  issueServer(): CertificateFiles;
  /** PEM to PEM; throws where openssl refuses the request. */
  signRequest(csr: string, commonName: string): string;
};

export function openssl(args: readonly string[], input?: string): string {
  return execFileSync('openssl', args, {
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(input === undefined ? {} : { input }),
  });
}

/** In a directory that is there and empty. */
export function createPki(directory: string, nodeId = 'node-1'): Pki {
  const ca = createAuthority(join(directory, 'ca'), 'Ploy Cluster CA');
  const issueNode = (id: string): CertificateFiles =>
    issue(ca, join(directory, `node-${id}`), `/O=Ploy/CN=node:${id}`, nodeExtensions(id));
  const issueServer = (name: string): CertificateFiles =>
    issue(ca, join(directory, name), '/O=Ploy/CN=127.0.0.1', [
      'subjectAltName=IP:127.0.0.1,DNS:localhost',
      'extendedKeyUsage=serverAuth',
    ]);
  let foreign: Pki['foreign'] | undefined;
  return {
    directory,
    ca,
    server: issueServer('server'),
    node: issueNode(nodeId),
    get foreign() {
      foreign ??= createForeign(join(directory, 'foreign'), nodeId);
      return foreign;
    },
    expired: () =>
      issue(ca, join(directory, 'expired'), `/O=Ploy/CN=node:${nodeId}`, nodeExtensions(nodeId), -1),
    issueNode,
    issueDated: (id, fromDays, toDays) =>
      issueDated(ca, join(directory, `dated-${nextSerial()}`), { id, fromDays, toDays }),
    issueServer: () => issueServer(`server-${serials}`),
    signRequest: (csr, commonName) => signRequest(ca, directory, csr, commonName),
  };
}

function createForeign(directory: string, nodeId: string): Pki['foreign'] {
  const ca = createAuthority(join(directory, 'ca'), 'Another CA');
  const node = issue(ca, join(directory, 'node'), `/O=Ploy/CN=node:${nodeId}`, nodeExtensions(nodeId));
  return { ca, node };
}

function createAuthority(directory: string, name: string): CertificateFiles {
  mkdirSync(directory, { recursive: true });
  const files = filesIn(directory);
  createKey(files.key);
  openssl([
    ...['req', '-x509', '-new', '-sha256', '-key', files.key, '-out', files.cert, '-days', '3650'],
    ...['-subj', `/O=Ploy/CN=${name}`],
    ...['-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=critical,keyCertSign,cRLSign'],
  ]);
  return files;
}

function issue(
  ca: CertificateFiles,
  directory: string,
  subject: string,
  extensions: readonly string[],
  days = 365,
): CertificateFiles {
  mkdirSync(directory, { recursive: true });
  const files = filesIn(directory);
  createKey(files.key);
  const request = openssl(['req', '-new', '-sha256', '-key', files.key, '-subj', subject]);
  writeFileSync(files.cert, sign(ca, directory, request, extensions, days));
  return files;
}

/** Of what makes certificates only `openssl ca` dates them at will. */
function issueDated(
  ca: CertificateFiles,
  directory: string,
  about: { id: string; fromDays: number; toDays: number },
): CertificateFiles {
  mkdirSync(directory, { recursive: true });
  const files = filesIn(directory);
  const at = (name: string): string => join(directory, name);
  createKey(files.key);
  const subject = `/O=Ploy/CN=node:${about.id}`;
  const request = openssl(['req', '-new', '-sha256', '-key', files.key, '-subj', subject]);
  writeFileSync(at('request'), request);
  writeFileSync(at('index'), '');
  writeFileSync(at('serial'), `${nextSerial()}\n`);
  const sections = [
    ...['[ca]', 'default_ca=own', '[own]', `database=${at('index')}`, `serial=${at('serial')}`],
    ...[`new_certs_dir=${directory}`, 'default_md=sha256', 'policy=any', 'x509_extensions=node'],
    ...['[any]', 'organizationName=supplied', 'commonName=supplied', '[node]', ...nodeExtensions(about.id)],
  ];
  writeFileSync(at('config'), `${sections.join('\n')}\n`);
  const date = (days: number): string =>
    new Date(Date.now() + days * 86_400_000).toISOString().replace(/[-:T]|\.\d+/g, '');
  openssl([
    ...['ca', '-batch', '-notext', '-config', at('config'), '-cert', ca.cert, '-keyfile', ca.key],
    ...['-startdate', date(about.fromDays), '-enddate', date(about.toDays)],
    ...['-in', at('request'), '-out', files.cert],
  ]);
  return files;
}

function sign(
  ca: CertificateFiles,
  directory: string,
  request: string,
  extensions: readonly string[],
  days = 365,
): string {
  const extensionFile = join(directory, 'extensions');
  writeFileSync(extensionFile, `${extensions.join('\n')}\n`);
  return openssl(
    [
      ...['x509', '-req', '-sha256', '-CA', ca.cert, '-CAkey', ca.key, '-set_serial', nextSerial()],
      ...['-days', String(days)],
      ...['-extfile', extensionFile],
    ],
    request,
  );
}

function signRequest(ca: CertificateFiles, directory: string, csr: string, commonName: string): string {
  const shown = openssl(['req', '-noout', '-verify', '-subject', '-nameopt', 'RFC2253'], csr);
  if (!shown.split(/[\n,=]/).includes(commonName)) throw new Error(`the request is not for ${commonName}`);
  const id = commonName.replace(/^node:/, '');
  return sign(ca, directory, csr, nodeExtensions(id));
}

function nodeExtensions(nodeId: string): string[] {
  return [
    `subjectAltName=DNS:node-${nodeId.replaceAll('_', '-')}.ploy`,
    'extendedKeyUsage=clientAuth,serverAuth',
  ];
}

function createKey(path: string): void {
  writeFileSync(path, openssl(['ecparam', '-name', 'prime256v1', '-genkey', '-noout']), { mode: 0o600 });
}

/** Of another kind than all keys here. */
export function writeRsaKey(path: string): void {
  const key = openssl(['genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048']);
  writeFileSync(path, key, { mode: 0o600 });
}

function filesIn(directory: string): CertificateFiles {
  return { cert: join(directory, 'cert.pem'), key: join(directory, 'key.pem') };
}

let serials = 1000;

function nextSerial(): string {
  serials += 1;
  return String(serials);
}
