// What a check has found: one line, with what, where, and how to mend it.

export type FindingLevel = 'ok' | 'skipped' | 'warning' | 'failure';

export type Finding = { level: FindingLevel; what: string; where?: string; fix?: string };

type Details = { where?: string; fix?: string };

export const ok = (what: string, details: Details = {}): Finding => ({ level: 'ok', what, ...details });
export const skipped = (what: string): Finding => ({ level: 'skipped', what });
export const warning = (what: string, details: Details = {}): Finding => ({
  level: 'warning',
  what,
  ...details,
});
export const failure = (what: string, details: Details = {}): Finding => ({
  level: 'failure',
  what,
  ...details,
});

/** All that is wrong, or one line that all is well. */
export function orOk(findings: readonly Finding[], fine: Finding): Finding[] {
  return findings.length === 0 ? [fine] : [...findings];
}

/** The first few of many names. */
export function listNames(names: readonly string[], most = 5): string {
  const shown = names.slice(0, most).join(', ');
  return names.length <= most ? shown : `${shown} and ${names.length - most} more`;
}

export function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit > 0 && value < 100 ? 1 : 0;
  return `${value.toFixed(digits)} ${units[unit]}`;
}
