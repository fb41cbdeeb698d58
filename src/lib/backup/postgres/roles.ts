// The roles in what `pg_dumpall --globals-only` writes: which statements make those that a server lacks. What is there already
// is left as it is, the one that asks among them. Pure.

export type RolesPlan = {
  /** To be run in this order, in one transaction. */
  statements: readonly string[];
  /** Those that they make. */
  made: readonly string[];
  /** Tablespaces are directories of the server's machine: they are named, and not made. */
  tablespaces: readonly string[];
};

export function planRoles(globals: string, existing: ReadonlySet<string>): RolesPlan {
  const statements: string[] = [];
  const made: string[] = [];
  const tablespaces: string[] = [];
  for (const statement of splitStatements(globals)) {
    const about = readStatement(statement);
    if (about.kind === 'tablespace') tablespaces.push(about.name);
    if (about.kind === 'role' && about.isNew && !existing.has(about.name)) made.push(about.name);
    if (isWanted(about, existing)) statements.push(`${statement};`);
  }
  return { statements, made, tablespaces };
}

type Statement =
  | { kind: 'setting' }
  | { kind: 'role'; name: string; isNew: boolean }
  | { kind: 'membership'; roles: readonly string[] }
  | { kind: 'tablespace'; name: string }
  | { kind: 'other' };

function isWanted(about: Statement, existing: ReadonlySet<string>): boolean {
  switch (about.kind) {
    case 'setting':
      return true;
    case 'role':
      return !existing.has(about.name);
    case 'membership':
      return about.roles.some((role) => !existing.has(role));
    case 'tablespace':
    case 'other':
      return false;
  }
}

const identifier = '("(?:[^"]|"")*"|[^\\s";]+)';
const makePattern = new RegExp(`^CREATE (ROLE|TABLESPACE) ${identifier}`);
const rolePattern = new RegExp(
  `^(?:ALTER ROLE|COMMENT ON ROLE|SECURITY LABEL FOR \\S+ ON ROLE) ${identifier}(?=\\s)(?! IN DATABASE)`,
);
const membershipPattern = new RegExp(`^GRANT ${identifier} TO ${identifier}`);

function readStatement(statement: string): Statement {
  if (/^SET \w/.test(statement)) return { kind: 'setting' };
  const [, what, made] = makePattern.exec(statement) ?? [];
  if (made !== undefined) {
    const name = readIdentifier(made);
    return what === 'ROLE' ? { kind: 'role', name, isNew: true } : { kind: 'tablespace', name };
  }
  const [, role] = rolePattern.exec(statement) ?? [];
  if (role !== undefined) return { kind: 'role', name: readIdentifier(role), isNew: false };
  const [, group, member] = membershipPattern.exec(statement) ?? [];
  if (group === undefined || member === undefined) return { kind: 'other' };
  return { kind: 'membership', roles: [group, member].map(readIdentifier) };
}

function readIdentifier(text: string): string {
  return text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text;
}

/**
 * A comment, a line that is psql's own, a quoted text or name, the end of a statement, or another character. `pg_dumpall`
 * doubles a quote inside quotes, also in those of `E''`.
 */
const piecePattern = /--[^\n]*|^\\[^\n]*|'[^']*'|"[^"]*"|;|[\s\S]/gm;

function splitStatements(text: string): string[] {
  const statements: string[] = [];
  let statement = '';
  for (const [piece] of text.matchAll(piecePattern)) {
    if (piece.startsWith('--') || (piece.startsWith('\\') && piece.length > 1)) continue;
    if (piece !== ';') {
      statement += piece;
      continue;
    }
    statements.push(statement.trim());
    statement = '';
  }
  return statements;
}
