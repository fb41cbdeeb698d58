import { describe, expect, it } from 'vitest';
import { defaultLimits } from '../../../src/lib/backup/engine.ts';
import { readCredentials } from '../../../src/lib/backup/postgres/engine.ts';
import { buildProgram, psqlArgv } from '../../../src/lib/backup/postgres/programs.ts';
import {
  majorOfNumber,
  parseAbout,
  parseClientVersion,
  parseRows,
} from '../../../src/lib/backup/postgres/sql.ts';
import { containerArgv } from '../../../src/lib/docker/exec.ts';
import { redactNothing } from '../../../src/lib/exec/redact.ts';

const hex = (text: string): string => Buffer.from(text).toString('hex');

describe('what PostgreSQL answers', () => {
  it('has names of any bytes', () => {
    const rows = parseAbout([
      'version|15.18 (Debian 15.18-1)|150018',
      `database|${hex('a|b\nc')}|10|f|t|f`,
      'database|6eef76|10|f|t|f',
      `database|${hex('old')}|0|f|t|t`,
    ]);
    expect([rows.version, rows.versionNumber]).toEqual(['15.18', 150_018]);
    expect(rows.databases).toMatchObject([
      { name: 'a|b\nc', shown: 'a|b\nc', sizeBytes: 10 },
      { name: undefined, shown: '0x6eef76' },
      { name: 'old', skip: expect.stringContaining('invalid') },
    ]);
    expect(parseRows(`rows|${hex('s|x')}|${hex('t\n')}|12`)).toEqual({
      schema: 's|x',
      table: 't\n',
      rows: 12,
    });
    expect(parseRows('counted')).toBeUndefined();
  });

  it('tells its version in any age (O10)', () => {
    const majors = [
      'pg_dump (PostgreSQL) 9.6.24',
      'pg_dump (PostgreSQL) 17beta1',
      'pg_dump (PostgreSQL) 15.18 (Debian)',
    ];
    expect(majors.map((text) => parseClientVersion(text)?.major)).toEqual([9.06, 17, 15]);
    expect(parseClientVersion('command not found')).toBeUndefined();
    expect([90_624, 100_023, 150_018].map(majorOfNumber)).toEqual([9.06, 10, 15]);
  });
});

describe('a program in the container', () => {
  const programs = {
    ...{ socket: '/s', container: { id: 'c1', env: [] }, runId: 'r', signal: new AbortController().signal },
    ...{ limits: defaultLimits, user: 'postgres', password: 'secret $(touch x)', redact: redactNothing },
  };

  it('has no terminal, no secret and no name in its arguments (O8, O15, L86)', () => {
    const program = buildProgram(programs, psqlArgv, { database: '-Fc', name: 'reeve' });
    const argv = containerArgv(program, { input: 'x' });
    expect(argv).not.toEqual(expect.arrayContaining(['-t', '--tty']));
    expect(argv.join('\n')).not.toMatch(/secret|-Fc/);
    expect(program.env).toMatchObject({ PGDATABASE: '-Fc', PGPASSWORD: 'secret $(touch x)' });
    expect(argv).toEqual(expect.arrayContaining(['--no-psqlrc', '--no-password']));
  });

  it('is run as whom the container says (L86)', () => {
    expect(readCredentials(['POSTGRES_PASSWORD=a=b'])).toEqual({ user: 'postgres', password: 'a=b' });
    expect(() => readCredentials([])).toThrow('the container has no POSTGRES_PASSWORD');
    expect(() => readCredentials(['POSTGRES_USER=-x', 'POSTGRES_PASSWORD=p'])).toThrow(
      'POSTGRES_USER is no plain name',
    );
  });
});
