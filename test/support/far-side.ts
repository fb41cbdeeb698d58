// The control side as a node reaches it: two directories behind a real sshd, each by a key that is good for it alone.
import { mkdirSync, writeFileSync } from 'node:fs';
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
  /** The same keys beside the configuration of another machine, `etc/reeve.yaml` below its root, from now on. */
  moveTo(near: string): void;
};

/** `root` is for its tree; ssh's files go into `etc/ssh` below it, beside the node's configuration. */
export function makeFarSide(sshd: Sshd, root: string): FarSide {
  const [deploy, events] = [join(root, 'homelab/actions/deploy/web-1'), join(root, 'homelab/events/web-1')];
  for (const directory of [deploy, events]) mkdirSync(directory, { recursive: true });
  const keys = {
    pull: sshd.allow(`rrsync -ro -munge -absolute ${deploy}`),
    push: sshd.allow(`rrsync -wo -no-del -munge -absolute ${events}`),
  };
  let ssh = '';
  const leadTo = (port: number): void => {
    writeFileSync(join(ssh, 'known_hosts'), sshd.knownHosts(port));
    writeFileSync(join(ssh, 'config'), `Host control\n  HostName 127.0.0.1\n  Port ${port}\n  User root\n`);
  };
  const moveTo = (near: string): void => {
    ssh = join(near, 'etc/ssh');
    mkdirSync(ssh, { recursive: true });
    for (const [name, key] of Object.entries(keys)) writeFileSync(join(ssh, name), key, { mode: 0o600 });
    leadTo(sshd.port);
  };
  moveTo(root);
  return { deploy, events, pull: `control:${deploy}/`, push: `control:${events}/`, leadTo, moveTo };
}
