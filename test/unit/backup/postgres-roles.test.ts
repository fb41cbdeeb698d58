// Which statements of `pg_dumpall --globals-only` make the roles that a server lacks.
import { describe, expect, it } from 'vitest';
import { planRoles } from '../../../src/lib/backup/postgres/roles.ts';

const globals = `--
-- PostgreSQL database cluster dump; CREATE ROLE none;
--

\\restrict Abc

SET default_transaction_read_only = off;

SET client_encoding = 'UTF8';

--
-- Roles
--

CREATE ROLE app;
ALTER ROLE app WITH NOSUPERUSER INHERIT LOGIN PASSWORD 'SCRAM-SHA-256$4096:it''s; odd--';
COMMENT ON ROLE app IS 'two
\\lines; of "it"';
CREATE ROLE "od""d
one;";
ALTER ROLE "od""d
one;" WITH NOSUPERUSER;
CREATE ROLE postgres;
ALTER ROLE postgres WITH SUPERUSER PASSWORD 'secret';

--
-- User Config "app"
--

ALTER ROLE app SET search_path TO 'a', 'b\\c';
ALTER ROLE app IN DATABASE shop SET work_mem TO '1MB';
ALTER ROLE postgres SET work_mem TO '1MB';

GRANT pg_monitor TO app GRANTED BY postgres;
GRANT pg_monitor TO postgres GRANTED BY postgres;
CREATE TABLESPACE "fast disk" OWNER postgres LOCATION '/mnt/fast';
GRANT ALL ON TABLESPACE "fast disk" TO app;

\\unrestrict Abc
`;

const settings = ['SET default_transaction_read_only = off;', "SET client_encoding = 'UTF8';"];

describe('the roles of a cluster dump', () => {
  it('are made where they are missing, with all that belongs to them', () => {
    expect(planRoles(globals, new Set(['postgres', 'pg_monitor']))).toEqual({
      made: ['app', 'od"d\none;'],
      tablespaces: ['fast disk'],
      statements: [
        ...settings,
        'CREATE ROLE app;',
        "ALTER ROLE app WITH NOSUPERUSER INHERIT LOGIN PASSWORD 'SCRAM-SHA-256$4096:it''s; odd--';",
        'COMMENT ON ROLE app IS \'two\n\\lines; of "it"\';',
        'CREATE ROLE "od""d\none;";',
        'ALTER ROLE "od""d\none;" WITH NOSUPERUSER;',
        "ALTER ROLE app SET search_path TO 'a', 'b\\c';",
        'GRANT pg_monitor TO app GRANTED BY postgres;',
      ],
    });
  });

  it('are left as they are where they are there, the one that asks among them', () => {
    expect(planRoles(globals, new Set(['postgres', 'pg_monitor', 'app', 'od"d\none;']))).toEqual({
      ...{ made: [], tablespaces: ['fast disk'], statements: settings },
    });
  });

  it('are none where nothing is', () => {
    expect(planRoles('', new Set())).toEqual({ made: [], tablespaces: [], statements: [] });
  });
});
