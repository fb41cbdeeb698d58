// Plain values as YAML text: as much of it as a configuration needs. The yaml package does this as well, but loading it
// would take a quarter of the time of the commands that only show something. Pure.

type Mapping = Readonly<Record<string, unknown>>;

/** One line a key, nested mappings indented, lists in brackets. */
export function renderYaml(value: Mapping, indent = ''): string[] {
  return Object.entries(value).flatMap(([key, member]) => {
    const nested = isMapping(member) ? renderYaml(member, `${indent}  `) : [];
    if (nested.length > 0) return [`${indent}${renderScalar(key)}:`, ...nested];
    return [`${indent}${renderScalar(key)}: ${renderFlow(member)}`];
  });
}

/** Plain where no YAML parser can read it as anything but this text, else quoted as JSON, which is YAML as well. */
export function renderScalar(text: string): string {
  const isPlain = /^[A-Za-z/][A-Za-z0-9_./:@-]*$/.test(text) && !text.endsWith(':');
  return isPlain && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text) ? text : JSON.stringify(text);
}

function renderFlow(value: unknown): string {
  if (typeof value === 'string') return renderScalar(value);
  if (Array.isArray(value)) return `[${value.map(renderFlow).join(', ')}]`;
  return JSON.stringify(value ?? null);
}

function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
