// What the unit of this process does not show it: systemd mounts an empty place over that, which the kernel lists with the rest. Pure.
import { resolve } from 'node:path';

/** Of systemd, or of the container that the machine is: what is inaccessible, and a unit's own directories for temporary files. */
const hiding = /^\/(?:run\/)?(?:systemd|host)\/inaccessible\/|\/systemd-private-/;

/** The hidden directory that the path lies in, by the text of `/proc/self/mountinfo`: `proc_pid_mountinfo(5)`. */
export function findHidden(mounts: string, path: string): string | undefined {
  const wanted = resolve(path);
  let found: string | undefined;
  let isHidden = false;
  for (const line of mounts.split('\n')) {
    const [, , , root = '', raw = ''] = line.split(' ');
    const place = raw.replaceAll(/\\([0-7]{3})/g, (_, code: string) =>
      String.fromCharCode(parseInt(code, 8)),
    );
    const isOver = place === '/' || wanted === place || wanted.startsWith(`${place}/`);
    // Of two the deeper one counts, and of one place the mount that came last.
    if (raw === '' || !isOver || place.length < (found?.length ?? 0)) continue;
    found = place;
    isHidden = hiding.test(root);
  }
  return isHidden ? found : undefined;
}
