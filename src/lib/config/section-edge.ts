// The edge's part of the section `cluster`: Caddy, and the balancer behind it.
import { resolve } from 'node:path';
import type { CaddyConfig, ClusterConfig, HaproxyConfig } from './config.ts';
import { isLoopback, isPublicBind, parseListenAddress } from './listen.ts';
import type { ClusterInput } from './schema.ts';
import { isWebUrl, type Section, type Surroundings } from './section.ts';

type ClusterSection = Section<ClusterInput>;

export function readEdge(
  section: ClusterSection,
  around: Surroundings,
): Pick<ClusterConfig, 'caddy' | 'balancer' | 'haproxy'> {
  const caddy = readCaddy(section, around);
  return {
    caddy,
    balancer: section.value.balancer ?? 'auto',
    haproxy: readHaproxy(section, around, caddy),
  };
}

function readCaddy(section: ClusterSection, around: Surroundings): CaddyConfig {
  const { caddy } = section.value;
  const { httpPort = 80, httpsPort = 443, issuer = 'acme', email, acmeDirectory } = caddy ?? {};
  if (httpPort === httpsPort)
    section.report(['caddy', 'httpPort'], 'must differ from cluster.caddy.httpsPort');
  if (email !== undefined && !/^[\x21-\x7e]+@[\x21-\x7e]+$/.test(email)) {
    section.report(['caddy', 'email'], `must be an e-mail address, not "${email}"`);
  }
  if (issuer === 'internal') {
    for (const key of ['email', 'acmeDirectory'] as const) {
      if (caddy?.[key] !== undefined) section.report(['caddy', key], 'is only for the issuer "acme"');
    }
  }
  return {
    admin: readCaddyAdmin(section, around),
    httpPort,
    httpsPort,
    issuer,
    ...(email === undefined ? {} : { email }),
    ...(acmeDirectory === undefined ? {} : { acmeDirectory }),
  };
}

/** launch-pad's variable may leave the scheme out (`localhost:2019`). */
function readCaddyAdmin(section: ClusterSection, { overrides }: Surroundings): string {
  const raw = overrides.LAUNCHPAD_CADDY_ADMIN;
  const admin =
    raw === undefined
      ? (section.value.caddy?.admin ?? 'http://127.0.0.1:2019')
      : raw.includes('://')
        ? raw
        : `http://${raw}`;
  if (!isWebUrl(admin)) section.reportOutside(`LAUNCHPAD_CADDY_ADMIN must be an address, not "${raw}"`);
  else if (isPublicBind(new URL(admin).hostname.replace(/^\[|\]$/g, '')))
    section.warn(
      `Caddy's admin API at "${admin}" is not on a private address: whoever reaches it is asked for nothing`,
    );
  return admin.replace(/\/+$/, '');
}

function readHaproxy(section: ClusterSection, around: Surroundings, caddy: CaddyConfig): HaproxyConfig {
  const { address = '127.0.0.1:7300', directory = '/run/reeve-balancer' } = section.value.haproxy ?? {};
  const listen = parseListenAddress(address);
  if (listen === undefined || listen.port === 0 || !isLoopback(listen.host)) {
    section.report(
      ['haproxy', 'address'],
      `must be IP:PORT on the loopback, not "${address}": only Caddy may reach it`,
    );
  } else reportTaken(section, listen.port, caddy);
  const { stateDir, runDir, cacheDir } = around.paths;
  const own = [stateDir, runDir, cacheDir].find((path) => isWithin(path, directory));
  if (own !== undefined) {
    section.report(
      ['haproxy', 'directory'],
      `must be a directory of its own, not "${directory}": ${own} is reeve's`,
    );
  }
  return { address, directory };
}

/** Caddy listens on all addresses; its admin API, at an address without a port, on that of its scheme. */
function reportTaken(section: ClusterSection, port: number, caddy: CaddyConfig): void {
  const url = URL.canParse(caddy.admin) ? new URL(caddy.admin) : undefined;
  const adminPort = Number(url?.port || (url?.protocol === 'https:' ? 443 : 80));
  const taken = [
    { key: 'httpPort', port: caddy.httpPort },
    { key: 'httpsPort', port: caddy.httpsPort },
    { key: 'admin', port: adminPort },
  ].find((one) => one.port === port);
  if (taken !== undefined)
    section.report(['haproxy', 'address'], `must have another port than cluster.caddy.${taken.key}, ${port}`);
}

/** `path` is `outer`, or lies below it. */
function isWithin(outer: string, path: string): boolean {
  return `${resolve(path)}/`.startsWith(`${resolve(outer)}/`);
}
