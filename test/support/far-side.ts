// The control side as a node reaches it: two directories behind a real sshd, each by a key that is good for it alone.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Sshd } from './sshd.ts';

export type FarSide = {
  /** `actions/deploy/web-1`: what the node pulls. */
  readonly deploy: string;
  /** `events/web-1`: where it pushes to. */
  readonly events: string;
  /** As in the configuration. */
  readonly pull: string;
  readonly push: string;
  /** Another way to the same sshd from now on. */
  leadTo(port: number): void;
};

/** `root` is for its tree; ssh's files go into `etc/ssh` below `near`, beside the node's configuration. */
export function makeFarSide(sshd: Sshd, root: string, near = root): FarSide {
  const [deploy, events] = [join(root, 'homelab/actions/deploy/web-1'), join(root, 'homelab/events/web-1')];
  const ssh = join(near, 'etc/ssh');
  for (const directory of [deploy, events, ssh]) mkdirSync(directory, { recursive: true });
  writeFileSync(join(ssh, 'pull'), sshd.allow(`rrsync -ro -absolute ${deploy}`));
  writeFileSync(join(ssh, 'push'), sshd.allow(`rrsync -wo -no-del -absolute ${events}`));
  for (const key of ['pull', 'push']) chmodSync(join(ssh, key), 0o600);
  const leadTo = (port: number): void => {
    writeFileSync(join(ssh, 'known_hosts'), sshd.knownHosts(port));
    writeFileSync(join(ssh, 'config'), `Host control\n  HostName 127.0.0.1\n  Port ${port}\n  User root\n`);
  };
  leadTo(sshd.port);
  return { deploy, events, pull: `control:${deploy}/`, push: `control:${events}/`, leadTo };
}
