// Networks and volumes over the Engine API.
import type { Connection } from './connection.ts';
import { containerPath } from './containers.ts';
import { type Deadlines, total } from './deadline.ts';
import { EngineError } from './errors.ts';
import { parseContainerNetworks, parseNetworkName, parseVolumeList } from './parse.ts';
import type { Call } from './transport.ts';
import type { Engine } from './types.ts';

type NetworkCalls = Pick<
  Engine,
  'ensureNetwork' | 'connectNetwork' | 'removeNetwork' | 'listVolumes' | 'removeVolume'
>;

export function networkCalls(connection: Connection, deadlines: Deadlines): NetworkCalls {
  const removal = async (call: Pick<Call, 'action' | 'path'>): Promise<void> => {
    await connection.ask({ ...call, method: 'DELETE', deadline: total(deadlines.changeMs), accept: [404] });
  };
  // Two requests at once make two networks of one name, which is ambiguous for ever after: the engine's own check is no
  // lock. Within a process we ask once; between processes the caller's lock keeps them apart.
  const underWay = new Map<string, Promise<void>>();
  const ensureOnce = (name: string, labels: Readonly<Record<string, string>>): Promise<void> => {
    const made =
      underWay.get(name) ??
      ensureNetwork(connection, deadlines, name, labels).finally(() => underWay.delete(name));
    underWay.set(name, made);
    return made;
  };
  return {
    ensureNetwork: ensureOnce,
    connectNetwork: (network, containerId, aliases) =>
      connectNetwork(connection, deadlines, { network, containerId, aliases }),
    removeNetwork: (name) => removal({ action: `remove network "${name}"`, path: networkPath(name) }),
    listVolumes: async ({ namePrefix }) => {
      const volumes = await connection.read(
        {
          action: 'list volumes',
          method: 'GET',
          path: '/volumes',
          // The engine takes the name as a part of names (podman: as a pattern): a first sieve only.
          query: { filters: JSON.stringify(namePrefix === '' ? {} : { name: [namePrefix] }) },
          deadline: total(deadlines.readMs),
        },
        parseVolumeList,
      );
      return volumes.filter((volume) => volume.name.startsWith(namePrefix));
    },
    removeVolume: (name) =>
      removal({
        action: `remove volume "${name}"`,
        path: `/volumes/${encodeURIComponent(name || 'unnamed')}`,
      }),
  };
}

async function ensureNetwork(
  connection: Connection,
  deadlines: Deadlines,
  name: string,
  labels: Readonly<Record<string, string>>,
): Promise<void> {
  const found = await connection.read(
    {
      action: `look for network "${name}"`,
      method: 'GET',
      path: networkPath(name),
      deadline: total(deadlines.readMs),
      accept: [404],
    },
    (json, status) => (status === 404 ? undefined : parseNetworkName(json)),
  );
  // The engine also finds networks by the beginning of their id.
  if (found === name) return;
  await connection.ask({
    action: `create network "${name}"`,
    method: 'POST',
    path: '/networks/create',
    // Engines before API 1.44 make two networks of one name unless told to check.
    body: { Name: name, CheckDuplicate: true, Driver: 'bridge', Labels: labels },
    deadline: total(deadlines.changeMs),
    accept: [409],
  });
}

async function connectNetwork(
  connection: Connection,
  deadlines: Deadlines,
  about: { network: string; containerId: string; aliases: readonly string[] },
): Promise<void> {
  const { network, containerId, aliases } = about;
  const action = `connect container "${containerId}" to network "${network}"`;
  const answer = await connection.ask({
    action,
    method: 'POST',
    path: `${networkPath(network)}/connect`,
    body: { Container: containerId, EndpointConfig: { Aliases: aliases } },
    deadline: total(deadlines.changeMs),
    accept: [403, 409, 500],
  });
  if (answer.status < 400) return;
  // Engines refuse a second join with 403, 409 or 500, each also for other reasons: what counts is what is.
  const joined = await connection.read(
    {
      action: `inspect container "${containerId}"`,
      method: 'GET',
      path: `${containerPath(containerId)}/json`,
      deadline: total(deadlines.readMs),
    },
    parseContainerNetworks,
  );
  if (!joined.includes(network)) throw new EngineError(`cannot ${action}: ${answer.message}`, answer.status);
}

function networkPath(name: string): string {
  return `/networks/${encodeURIComponent(name || 'unnamed')}`;
}
