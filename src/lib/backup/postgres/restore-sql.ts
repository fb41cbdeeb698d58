// The statements of a restore. Names are psql's variables, which quotes them: no statement is put together out of names here.
// In SQL_ASCII names are bytes, as they are in the catalogue, whatever the encoding of the database that is asked. Pure.
import { countRowsSql, restorePrefix } from './sql.ts';

/** `:name` is asked for: whether it is there, whether it is a template, and whether it takes connections. */
export const findDatabaseSql = `
SET client_encoding = 'SQL_ASCII';
SELECT 'database', datistemplate, datallowconn FROM pg_catalog.pg_database WHERE datname = :'name';
`;

/** What anybody has made in a database, what comes with extensions left out. */
export const countObjectsSql = `
SET search_path = '';
WITH spaces AS (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'),
  own AS (SELECT classid, objid FROM pg_catalog.pg_depend WHERE deptype = 'e')
SELECT 'objects',
  (SELECT count(*) FROM pg_catalog.pg_class c JOIN spaces s ON s.oid = c.relnamespace
    WHERE (c.tableoid, c.oid) NOT IN (SELECT classid, objid FROM own)) +
  (SELECT count(*) FROM pg_catalog.pg_proc p JOIN spaces s ON s.oid = p.pronamespace
    WHERE (p.tableoid, p.oid) NOT IN (SELECT classid, objid FROM own)) +
  (SELECT count(*) FROM pg_catalog.pg_type t JOIN spaces s ON s.oid = t.typnamespace
    WHERE (t.tableoid, t.oid) NOT IN (SELECT classid, objid FROM own)) +
  (SELECT count(*) FROM pg_catalog.pg_extension WHERE extname <> 'plpgsql') +
  (SELECT count(*) FROM pg_catalog.pg_largeobject_metadata) +
  (SELECT greatest(count(*) - 1, 0) FROM spaces);
`;

/** With `encoding`, empty for the server's own. A locale fits some encodings; that of `C` fits all. */
export const createDatabaseSql = `
SET client_encoding = 'SQL_ASCII';
SELECT format('CREATE DATABASE %I TEMPLATE template0', :'name') || CASE
  WHEN :'encoding' IN ('', pg_catalog.pg_encoding_to_char(encoding)) THEN ''
  ELSE format(' ENCODING %L LC_COLLATE ''C'' LC_CTYPE ''C''', :'encoding') END
FROM pg_catalog.pg_database WHERE datname = 'template0'
\\gexec
`;

/** As `like` is: its encoding, locale, owner, privileges and settings. The columns of a locale differ between versions. */
export const createLikeSql = `
SET client_encoding = 'SQL_ASCII';
SELECT format('CREATE DATABASE %I TEMPLATE template0 ENCODING %L LC_COLLATE %L LC_CTYPE %L OWNER %I CONNECTION LIMIT %s', :'name',
    pg_catalog.pg_encoding_to_char(d.encoding), d.datcollate, d.datctype, r.rolname, d.datconnlimit) ||
  CASE pg_catalog.to_jsonb(d)->>'datlocprovider'
    WHEN 'i' THEN format(' LOCALE_PROVIDER icu ICU_LOCALE %L',
      coalesce(pg_catalog.to_jsonb(d)->>'daticulocale', pg_catalog.to_jsonb(d)->>'datlocale'))
    WHEN 'b' THEN format(' LOCALE_PROVIDER builtin BUILTIN_LOCALE %L', pg_catalog.to_jsonb(d)->>'datlocale')
    ELSE '' END
FROM pg_catalog.pg_database d JOIN pg_catalog.pg_roles r ON r.oid = d.datdba WHERE d.datname = :'like'
\\gexec
SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC', :'name') FROM pg_catalog.pg_database
WHERE datname = :'like' AND datacl IS NOT NULL
\\gexec
SELECT format('GRANT %s ON DATABASE %I TO %s%s', a.privilege_type, :'name',
  CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(r.rolname) END,
  CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
FROM pg_catalog.pg_database d CROSS JOIN LATERAL pg_catalog.aclexplode(d.datacl) a
  LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
WHERE d.datname = :'like'
\\gexec
SELECT format('COMMENT ON DATABASE %I IS %L', :'name', pg_catalog.shobj_description(oid, 'pg_database'))
FROM pg_catalog.pg_database
WHERE datname = :'like' AND pg_catalog.shobj_description(oid, 'pg_database') IS NOT NULL
\\gexec
`;

/** Settings come last: some of them, as `default_transaction_read_only`, would keep a dump out. Lists are kept as quoted. */
export const copySettingsSql = `
SET client_encoding = 'SQL_ASCII';
SELECT format('ALTER %s SET %I TO %s',
  CASE s.setrole WHEN 0 THEN format('DATABASE %I', :'name') ELSE format('ROLE %I IN DATABASE %I', r.rolname, :'name') END,
  split_part(c, '=', 1),
  CASE WHEN lower(split_part(c, '=', 1)) IN ('search_path', 'temp_tablespaces', 'local_preload_libraries',
      'session_preload_libraries', 'shared_preload_libraries', 'unix_socket_directories')
    THEN substr(c, strpos(c, '=') + 1) ELSE pg_catalog.quote_literal(substr(c, strpos(c, '=') + 1)) END)
FROM pg_catalog.pg_db_role_setting s JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase
  LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole CROSS JOIN LATERAL unnest(s.setconfig) c
WHERE d.datname = :'like'
\\gexec
`;

export const terminateInSql = `
SET client_encoding = 'SQL_ASCII';
SELECT 'left', count(pg_catalog.pg_terminate_backend(pid)) FROM pg_catalog.pg_stat_activity
WHERE datname = :'name' AND pid <> pg_catalog.pg_backend_pid();
`;

export const dropDatabaseSql = `${terminateInSql}
DROP DATABASE IF EXISTS :"name";
`;

export const renameDatabaseSql = `
SET client_encoding = 'SQL_ASCII';
ALTER DATABASE :"from" RENAME TO :"to";
`;

/** Both or none. From its first statement on nobody new comes into `to`; who is there has five seconds to leave. */
export const swapDatabasesSql = `
SET client_encoding = 'SQL_ASCII';
BEGIN;
ALTER DATABASE :"to" RENAME TO :"old";
ALTER DATABASE :"from" RENAME TO :"to";
COMMIT;
`;

export const leftoversSql = `
SET client_encoding = 'SQL_ASCII';
SELECT 'database', datname FROM pg_catalog.pg_database
WHERE left(datname::text, ${restorePrefix.length}) = '${restorePrefix}' ORDER BY datname;
`;

export const rolesSql = `
SET client_encoding = 'UTF8';
SELECT 'role', encode(textsend(rolname::text), 'hex') FROM pg_catalog.pg_roles;
`;

export const countInSql = `
SET client_encoding = 'UTF8';
SET search_path = '';
SET statement_timeout = 0;
SET row_security = off;
${countRowsSql}
`;

export const dataDirectorySql = `
SELECT 'directory', current_setting('data_directory');
`;
