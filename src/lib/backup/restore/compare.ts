// What a restored database has, against what its dump had. Pure.
import type { TableRows } from '../manifest.ts';

/** One sentence a difference, in the order of the dump's tables; none where they are alike. */
export function compareRows(dumped: readonly TableRows[], restored: readonly TableRows[]): string[] {
  const found = new Map(restored.map((table) => [keyOf(table), table.rows]));
  const known = new Set(dumped.map(keyOf));
  const missing = dumped.flatMap((table) => {
    const rows = found.get(keyOf(table));
    if (rows === table.rows) return [];
    if (rows === undefined) return [`table ${showTable(table)} is missing`];
    return [`table ${showTable(table)} has ${rows} rows, and ${table.rows} were dumped`];
  });
  const added = restored
    .filter((table) => !known.has(keyOf(table)))
    .map((table) => `table ${showTable(table)} was not dumped`);
  return [...missing, ...added];
}

export function sumRows(tables: readonly TableRows[]): number {
  return tables.reduce((sum, { rows }) => sum + rows, 0);
}

function keyOf({ schema, table }: TableRows): string {
  return JSON.stringify([schema, table]);
}

function showTable({ schema, table }: TableRows): string {
  return `${JSON.stringify(schema)}.${JSON.stringify(table)}`;
}
