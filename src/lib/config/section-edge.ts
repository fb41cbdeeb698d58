// The edge's part of the section `cluster`: Caddy, and the balancer behind it.
import type { CaddyConfig, ClusterConfig, HaproxyConfig } from './config.ts';
import { isLoopback, parseListenAddress } from './listen.ts';
import type { ClusterInput } from './schema.ts';
import { isWebUrl, type Section, type Surroundings } from './section.ts';

type ClusterSection = Section<ClusterInput>;

export function readEdge(
  section: ClusterSection,
  around: Surroundings,
): Pick<ClusterConfig, 'caddy' | 'balancer' | 'haproxy'> {
  return {
    caddy: readCaddy(section, around),
    balancer: section.value.balancer ?? 'auto',
    haproxy: readHaproxy(section),
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
  return admin.replace(/\/+$/, '');
}

function readHaproxy(section: ClusterSection): HaproxyConfig {
  const { address = '127.0.0.1:7300', directory = '/run/reeve-balancer' } = section.value.haproxy ?? {};
  const listen = parseListenAddress(address);
  if (listen === undefined || listen.port === 0 || !isLoopback(listen.host)) {
    section.report(
      ['haproxy', 'address'],
      `must be IP:PORT on the loopback, not "${address}": only Caddy may reach it`,
    );
  }
  return { address, directory };
}
