// The two ends of a transfer as rsync writes them: a path of this machine, a directory over ssh, a daemon's module. Pure.

export type PlaceKind = 'local' | 'ssh' | 'daemon';

/** As rsync reads it: a colon before the first slash is a machine's, two are a daemon's. */
export function kindOfPlace(place: string): PlaceKind {
  if (/^rsync:\/\//i.test(place)) return 'daemon';
  const [machine] = /^(?:[^/[]*@)?\[[^\]/]*\]|^[^/:]*/.exec(place) ?? [''];
  const rest = place.slice(machine.length);
  if (machine === '' || !rest.startsWith(':')) return 'local';
  return rest.startsWith('::') ? 'daemon' : 'ssh';
}

/** Ends in a slash: what is in the directory, and not the directory. */
export function asDirectory(place: string): string {
  return place.endsWith('/') ? place : `${place}/`;
}
