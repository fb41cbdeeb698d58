// Hearing of changes in a directory. The kernel has only so many of these to give, to all programs together: whoever watches has
// to look by itself as well, only not as soon.
import { watch } from 'node:fs';

export type DirectoryWatch = { close(): void };

/** Never throws, and keeps no process alive. `name` is null where the kernel does not say what has changed. */
export function watchDirectory(path: string, onChange: (name: string | null) => void): DirectoryWatch {
  try {
    const watcher = watch(path, { persistent: false }, (_, name) => onChange(name));
    watcher.on('error', () => {});
    return watcher;
  } catch {
    return { close: () => {} };
  }
}
