// Where the node's proxy has its maps and its sockets. All of it is in memory and gone at boot: a port of then could be
// another instance's now.
import { join } from 'node:path';
import type { Paths } from '../config/paths.ts';

export const proxyService = 'reeve-proxy.service';

export type ProxyPaths = {
  /** Of the maps: ours to write, HAProxy's to read. */
  directory: string;
  /** The registry: ports by instance. */
  instancesMap: string;
  flagsMap: string;
  hostMap: string;
  runtimeSocket: string;
  masterSocket: string;
};

export function proxyPaths({ runDir }: Pick<Paths, 'runDir'>): ProxyPaths {
  const directory = join(runDir, 'proxy');
  // Beside REEVE_RUN, where HAProxy's user may not write.
  const sockets = `${runDir}-proxy`;
  return {
    directory,
    instancesMap: join(directory, 'instances.map'),
    flagsMap: join(directory, 'flags.map'),
    hostMap: join(directory, 'host.map'),
    runtimeSocket: join(sockets, 'runtime.sock'),
    masterSocket: join(sockets, 'master.sock'),
  };
}
