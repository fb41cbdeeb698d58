// HAProxy's file for the edge's routes. All of it but the servers is its structure, which needs a reload to change; servers
// come and go in the running process, and stand here for its next start. Pure.
import { createHash } from 'node:crypto';
import { compareBytewise } from '../cluster/canonical.ts';
import { InternalError } from '../errors.ts';
import { type Backend, backendName, dialOf, domainOf, type Route } from './route.ts';

export type BalancerFile = {
  text: string;
  /** A hash over everything but the servers; the running process tells it as its `description`. */
  structure: string;
};

/** The answer to a request that names no route. */
export const noRoute = 'no such route';

/**
 * How each server is looked after, in the file and when one is added. One error, by a probe or in the traffic, takes it
 * out for ten seconds or, where that is sooner, until the probe that is due anyway: the seed's `fail_duration`.
 */
export const serverOptions =
  'check inter 5s downinter 10s fall 1 rise 1 observe layer7 error-limit 1 on-error mark-down';

export function renderBalancerFile(routes: readonly Route[]): BalancerFile {
  const sorted = routes.toSorted((left, right) => compareBytewise(left.domain, right.domain));
  const heads = sorted.map(renderBackend);
  const structure = hashText([globalLines, restLines, ...heads].join('\n'));
  const blocks = sorted.map(({ backends }, index) => [heads[index], ...renderServers(backends)].join('\n'));
  const description = `  description "${describeStructure(structure)}"`;
  return { text: `${[`${globalLines}\n${description}`, restLines, ...blocks].join('\n\n')}\n`, structure };
}

/** `description` of a process with this structure. */
export function describeStructure(structure: string): string {
  return `reeve ${structure}`;
}

/** Undefined if it is not of ours. */
export function readStructure(description: string | undefined): string | undefined {
  return /^reeve (\S+)$/.exec(description ?? '')?.[1];
}

/** Paths of the probes by domain, out of a file of ours. */
export function parseHealthPaths(text: string): ReadonlyMap<string, string> {
  const found = text.matchAll(
    /^backend (\S+)\n {2}option httpchk\n {2}http-check send meth GET uri '(.*)' ver HTTP\/1\.1 /gm,
  );
  return new Map(
    [...found].map(([, name = '', path = '']) => [domainOf(name), path.replaceAll("'\\''", "'")]),
  );
}

/** `HOST:PORT`: the brackets of an IPv6 address cannot be in a name. */
export function serverName({ host, port }: Backend): string {
  return `${host}:${port}`;
}

// mworker-max-reloads: an old worker stays for its tunnels, and takes the memory of a whole one.
// fd-hard-limit: the limit of the unit, or this; how many connections it takes follows from it.
const globalLines = `# Written by \`reeve edge\`: what is changed here is lost.
global
  stats socket "\${REEVE_BALANCER_DIRECTORY-/run/reeve-balancer}/runtime.sock" mode 660 level admin
  mworker-max-reloads 50
  fd-hard-limit 262144
  tune.bufsize 32768
  tune.maxrewrite 1024`;

// http-server-close: a connection that is kept may be closed by its server just when a request is sent, and one that may not
// be sent twice is then lost. An idle one would also keep a container from stopping.
// 24d: close to the longest that HAProxy takes. Tunnels and answers end when their ends say so.
// idle-close-on-response: after a reload Caddy's kept connections are closed with an answer, not under a request.
const restLines = `defaults
  mode http
  balance roundrobin
  option http-server-close
  option idle-close-on-response
  retries 3
  option redispatch 1
  retry-on conn-failure empty-response
  timeout connect 5s
  timeout check 2s
  timeout http-request 10s
  timeout http-keep-alive 60s
  timeout client 24d
  timeout server 24d
  timeout tunnel 24d
  timeout client-fin 10s
  timeout server-fin 10s
  option clitcpka
  clitcpka-idle 60s
  clitcpka-intvl 10s
  clitcpka-cnt 6
  option srvtcpka
  srvtcpka-idle 60s
  srvtcpka-intvl 10s
  srvtcpka-cnt 6
  default-server ${serverOptions}

frontend edge
  bind "\${REEVE_BALANCER_BIND-127.0.0.1:7300}" proto h1
  # Caddy has decided about the name, and says whose request it is.
  http-request set-var(txn.route) req.hdr(X-Reeve-Route)
  http-request del-header X-Reeve-Route
  # What changes something is not sent again once a server has seen it.
  http-request disable-l7-retry unless METH_GET or { method HEAD OPTIONS }
  use_backend %[var(txn.route)]
  default_backend _none

backend _none
  http-request return status 503 content-type text/plain string "${noRoute}\\n"`;

function renderBackend({ domain, healthPath }: Route): string {
  const head = `backend ${requireName(backendName(domain))}`;
  if (healthPath === undefined) return head;
  return `${head}
  option httpchk
  http-check send meth GET uri ${quote(healthPath)} ver HTTP/1.1 hdr Host ${probeHost(domain)}
  http-check expect status 200-299`;
}

/** No one name stands for a wildcard: there it is the server's own address, an IPv6 one in brackets. */
function probeHost(domain: string): string {
  return domain.startsWith('*.') ? `'%[srv_name,regsub("^(.*:.*):","[\\1]:")]'` : domain;
}

function renderServers(backends: readonly Backend[]): string[] {
  return backends
    .map((backend) => `  server ${requireName(serverName(backend))} ${dialOf(backend)}`)
    .sort(compareBytewise);
}

/** Shards have been checked; here nothing else may get through, since it would be another line of the file. */
function requireName(name: string): string {
  if (/^[A-Za-z0-9_.:-]+$/.test(name)) return name;
  throw new InternalError(`${JSON.stringify(name)} cannot be a name in HAProxy's file`);
}

/** Between single quotes everything stands for itself, but for a single quote. */
function quote(text: string): string {
  if (!/^[\x21-\x7e]+$/.test(text))
    throw new InternalError(`${JSON.stringify(text)} cannot be a path in HAProxy's file`);
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function hashText(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
