// The text of a repository's own files, as values. Pure.

export type Head = { commit: string; ref?: string };

/** Undefined for what is neither. */
export function parseHead(
  text: string,
): { kind: 'commit'; commit: string } | { kind: 'branch'; ref: string } | undefined {
  const line = text.trim();
  if (/^[0-9a-f]{40}$/.test(line)) return { kind: 'commit', commit: line };
  const ref = /^ref: *(\S+)$/.exec(line)?.[1];
  return ref !== undefined && isRefName(ref) ? { kind: 'branch', ref } : undefined;
}

/** Only what can be a file below `refs/`, in each of its parts. */
export function isRefName(ref: string): boolean {
  const parts = ref.split('/');
  return (
    parts[0] === 'refs' &&
    parts.length >= 2 &&
    ref.length <= 1000 &&
    parts.every(
      (part) => /^[^\p{Cc}\s~^:?*[\\]+$/u.test(part) && !part.startsWith('.') && !part.endsWith('.lock'),
    )
  );
}

export function findPackedRef(text: string, ref: string): string | undefined {
  for (const line of text.split('\n')) {
    const [commit = '', name] = line.split(' ');
    if (name === ref && /^[0-9a-f]{40}$/.test(commit)) return commit;
  }
  return undefined;
}
