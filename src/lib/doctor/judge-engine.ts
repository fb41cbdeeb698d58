// The engine and the containers in it. Pure.
import { type Finding, failure, formatBytes, listNames, ok, orOk, plural, warning } from './finding.ts';

export type EngineFacts = {
  socket: string;
  version: string;
  apiVersion: string | undefined;
  containers: number;
  /** Containers of another node, with its label. */
  strangers: readonly string[];
  /** Logs that nothing bounds, of containers that are not ours. */
  unboundedLogs: readonly { name: string; sizeBytes: number }[];
};

/** A log that has grown to this without a bound will go on. */
const largeLogBytes = 100 * 1024 * 1024;

export function judgeEngine({ socket, version, apiVersion, containers }: EngineFacts): Finding[] {
  const api = apiVersion === undefined ? '' : `, API ${apiVersion}`;
  return [ok(`version ${version || 'unknown'}${api}, ${plural(containers, 'container')}`, { where: socket })];
}

export function judgeEngineFailure(socket: string, error: string): Finding[] {
  const fix = 'start it (`systemctl start docker`), or name its socket in cluster.docker.socket';
  return [failure(error, { where: socket, fix })];
}

export function judgeContainers({ strangers, unboundedLogs }: EngineFacts): Finding[] {
  const large = unboundedLogs.filter(({ sizeBytes }) => sizeBytes >= largeLogBytes);
  return orOk(
    [
      ...(strangers.length === 0
        ? []
        : [
            warning(`${strangers.length} of another node, which reeve leaves alone`, {
              where: listNames(strangers),
              fix: 'remove them, or give this node its former id (the label reeve.node says which)',
            }),
          ]),
      ...large.map(({ name, sizeBytes }) =>
        warning(`its log has ${formatBytes(sizeBytes)} and no bound`, {
          where: name,
          fix: 'create it with --log-opt max-size=10m, or set log-opts in /etc/docker/daemon.json',
        }),
      ),
    ],
    ok('no strangers, no unbounded logs'),
  );
}
