import { expect, it } from 'vitest';
import { findHidden } from '../../../src/lib/api-commands/hidden.ts';

const mounts = `22 1 8:1 / / ro,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw - proc proc rw
30 22 8:1 /var/lib/reeve /var/lib/reeve rw,relatime - ext4 /dev/sda1 rw
31 22 0:24 /systemd/inaccessible/dir /root ro,nosuid,nodev,noexec - tmpfs tmpfs rw
32 22 0:24 /systemd/inaccessible/dir /home ro - tmpfs tmpfs rw
33 22 8:1 /tmp/systemd-private-4a-reeve-api-commands.service-x/tmp /tmp rw - ext4 /dev/sda1 rw
34 22 0:24 /systemd/inaccessible/dir /srv/my\\040logs ro - tmpfs tmpfs rw
35 32 8:1 /home/app/logs /home/app/logs ro - ext4 /dev/sda1 rw
36 22 8:1 /data /srv/my\\040logs rw - ext4 /dev/sda1 rw
37 22 0:84 /host/inaccessible/dir /var/lib/docker ro shared:352 master:268 - tmpfs tmpfs rw
38 22 0:53 /run/host/inaccessible/dir /var/lib/containers ro - overlay overlay rw
39 22 0:24 /srv/host/inaccessible/dir /opt/app ro - tmpfs tmpfs rw
`;

it.each([
  ['/root', '/root'],
  ['/root/logs', '/root'],
  ['/home/other/logs', '/home'],
  ['/var/../home/other', '/home'],
  ['/tmp/logs', '/tmp'],
  ['/var/lib/docker/x', '/var/lib/docker'],
  ['/var/lib/containers/x', '/var/lib/containers'],
  ['/opt/app/logs', undefined],
  ['/rootless', undefined],
  ['/var/log', undefined],
  ['/', undefined],
])('what a unit hides is told from what it shows: %s', (path, hidden) => {
  expect(findHidden(mounts, path)).toBe(hidden);
});

it.each(['/home/app/logs', '/home/app/logs/x', '/srv/my logs'])(
  'what is opened within is shown: %s',
  (path) => {
    expect(findHidden(mounts, path)).toBeUndefined();
  },
);
