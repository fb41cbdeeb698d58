// A file system that never answers, as one of a network whose server is gone.
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { onTestFinished } from './after-test.ts';

/** Mounted at a directory that it makes. Whoever looks there waits until the test is over. */
export function mountDead(path: string): void {
  mkdirSync(path);
  const fd = openSync('/dev/fuse', 'r+');
  // Its server would answer on this.
  const options = 'fd=3,rootmode=40000,user_id=0,group_id=0,allow_other';
  execFileSync('mount', ['-i', '-t', 'fuse', '-o', options, 'dead', path], {
    stdio: ['ignore', 'ignore', 'inherit', fd],
  });
  onTestFinished(() => {
    closeSync(fd);
    execFileSync('umount', ['-l', path]);
  });
}

/** Whether the process or one that it has started waits there. */
export function isAskingDead(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .map((task) => `/proc/${pid}/task/${task}`)
      .some((task) => {
        if (readFileSync(`${task}/wchan`, 'utf8').startsWith('fuse_')) return true;
        const children = readFileSync(`${task}/children`, 'utf8').split(' ');
        return children.some((child) => child !== '' && isAskingDead(Number(child)));
      });
  } catch {
    // It has ended meanwhile.
    return false;
  }
}
