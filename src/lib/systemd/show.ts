// What systemd says about units: `systemctl show`, as values. Read-only.
import { type Argv, runProgram } from '../exec/run.ts';

export type UnitProperties = Readonly<Record<string, string>>;

const systemctlMs = 5_000;

/** One record a unit, in the order asked. Units that are not loaded are told of, too. Throws CommandError. */
export async function showUnits(
  units: readonly string[],
  properties: readonly string[],
): Promise<UnitProperties[]> {
  const argv: Argv = [
    'systemctl',
    'show',
    '--no-pager',
    `--property=${properties.join(',')}`,
    '--',
    ...units,
  ];
  const { stdout } = await runProgram(argv, { timeoutMs: systemctlMs });
  return parseProperties(stdout);
}

/** Names of the unit files that are installed, templates among them. Throws CommandError. */
export async function listUnitFiles(pattern: string): Promise<string[]> {
  const argv: Argv = ['systemctl', 'list-unit-files', '--no-pager', '--no-legend', '--plain', '--', pattern];
  // Systemd ends with 1 where no file matches.
  const { stdout } = await runProgram(argv, { timeoutMs: systemctlMs, okStatuses: [0, 1] });
  return stdout.split('\n').flatMap((line) => line.trim().split(/\s+/, 1)[0] || []);
}

/** The last lines that a unit has written, oldest first. Throws CommandError. */
export async function readUnitLog(unit: string, lines: number): Promise<string[]> {
  const argv: Argv = ['journalctl', '-u', unit, '-n', String(lines), '-o', 'cat', '--no-pager', '--quiet'];
  const { stdout } = await runProgram(argv, { timeoutMs: systemctlMs, maxOutputBytes: 64 * 1024 });
  return stdout.split('\n').filter((line) => line !== '');
}

/** Units are parted by empty lines; a value may contain `=`. */
export function parseProperties(text: string): UnitProperties[] {
  return text
    .split(/\n\n+/)
    .map((block) => block.split('\n').filter((line) => line.includes('=')))
    .filter((lines) => lines.length > 0)
    .map((lines) =>
      Object.fromEntries(
        lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
      ),
    );
}
