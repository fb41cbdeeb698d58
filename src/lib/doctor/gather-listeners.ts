// Which programs listen on a port of this machine: the kernel's table of sockets, and who has them open.
import { readdir, readFile, readlink } from 'node:fs/promises';
import { basename } from 'node:path';

export type ListeningProgram = { name: string; pid: number };

export type Listener = { port: number; programs: readonly ListeningProgram[] };

/** Programs that this user may not look into are left out, and so are ports that nobody listens on. */
export async function gatherListeners(ports: readonly number[]): Promise<Listener[]> {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((table) => readFile(`/proc/net/${table}`, 'utf8').catch(() => '')),
  );
  const portOf = new Map(
    tables
      .flatMap(parseListening)
      .filter(({ port }) => ports.includes(port))
      .map(({ inode, port }) => [inode, port]),
  );
  if (portOf.size === 0) return [];
  const holders = await listHolders(portOf);
  return ports
    .map((port) => ({
      port,
      programs: firstOfEach(holders.filter((holder) => holder.port === port)),
    }))
    .filter(({ programs }) => programs.length > 0);
}

/** A server's workers have its sockets open, too. */
function firstOfEach(holders: readonly ListeningProgram[]): ListeningProgram[] {
  const firsts = new Map<string, ListeningProgram>();
  for (const { name, pid } of holders.toSorted((left, right) => left.pid - right.pid)) {
    if (!firsts.has(name)) firsts.set(name, { name, pid });
  }
  return [...firsts.values()];
}

/** Lines of /proc/net/tcp: `sl local_address rem_address st ... inode`, addresses and ports in hexadecimal. */
export function parseListening(table: string): { inode: string; port: number }[] {
  return table.split('\n').flatMap((line) => {
    const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/);
    if (state !== '0A' || inode === undefined) return [];
    return [{ inode, port: Number.parseInt(local.slice(local.lastIndexOf(':') + 1), 16) }];
  });
}

async function listHolders(
  portOf: ReadonlyMap<string, number>,
): Promise<(ListeningProgram & { port: number })[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const open = await listSockets(pid);
      const held = open.flatMap((inode) => portOf.get(inode) ?? []);
      if (held.length === 0) return [];
      const name = await readProgramName(pid);
      return name === '' ? [] : held.map((port) => ({ port, name, pid: Number(pid) }));
    }),
  );
  return found.flat();
}

/** Of its file: a program may call its threads what it likes. Empty for one that is gone. */
async function readProgramName(pid: string): Promise<string> {
  const file = await readlink(`/proc/${pid}/exe`).catch(() => '');
  if (file !== '') return basename(file.replace(/ \(deleted\)$/, ''));
  return (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).trim();
}

/** Inodes of the sockets that a process has open; none for one that is gone or not ours to see. */
async function listSockets(pid: string): Promise<string[]> {
  const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => []);
  const links = await Promise.all(
    descriptors.map((descriptor) => readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '')),
  );
  return links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []);
}
