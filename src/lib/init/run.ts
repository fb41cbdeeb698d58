// `reeve init`: makes this machine a node. First its entries in the store, which may be there already, then its
// configuration, which may not: so a run that failed halfway is simply repeated.
import { randomBytes } from 'node:crypto';
import { link, lstat, mkdir, open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { compileConfig } from '../config/compile.ts';
import type { ClusterConfig } from '../config/config.ts';
import { requireNode } from '../config/rules.ts';
import { describeSource } from '../config/sources.ts';
import type { BaseContext } from '../context.ts';
import {
  ConfigError,
  describeError,
  InternalError,
  ReeveError,
  systemErrorCode,
  UsageError,
} from '../errors.ts';
import type { Outcome } from '../outcome.ts';
import { startUnits } from '../systemd/run.ts';
import { answer, type InitRequest } from './answers.ts';
import { type Entry, register } from './register.ts';
import { renderConfig } from './render.ts';

/** Throws ConfigError where there is a configuration already, UsageError for values no configuration may have. */
export async function initNode(started: BaseContext, request: InitRequest): Promise<Outcome> {
  const base = withEndpoint(started, request);
  const { paths } = base;
  await requireAbsent(paths.configFile);
  const text = renderConfig(answer(base, request));
  const cluster = compileText(base, text);
  const entries = await register(base, cluster);
  await writeNew(paths.configFile, text);
  const address = ({ key }: Entry): string => `${cluster.store.replace(/\/+$/, '')}/${key}`;
  const written = [paths.configFile, ...entries.filter(({ isNew }) => isNew).map(address)];
  const kept = entries.filter(({ isNew }) => !isNew).map(address);
  const units = await switchOn(base, cluster);
  return {
    outcome: units.failed ? 'partial' : 'done',
    text: [
      ...written.map((name) => `wrote ${name}`),
      ...kept.map((name) => `kept ${name}, which was there`),
      ...units.lines,
      describeNext(cluster),
    ],
    data: { nodeId: cluster.nodeId, roles: cluster.roles, store: cluster.store, written, kept },
  };
}

/** A flag wins over the environment, which a configuration gives way to. */
function withEndpoint(base: BaseContext, { endpoint }: InitRequest): BaseContext {
  if (endpoint === undefined) return base;
  return { ...base, overrides: { ...base.overrides, AWS_ENDPOINT_URL: endpoint } };
}

function describeNext({ roles, nodeId, edgeId = nodeId }: ClusterConfig & { nodeId: string }): string {
  const deploy = 'next: `reeve doctor` checks this machine, `reeve deploy FILE` gives it services';
  if (!roles.includes('edge')) return deploy;
  const name = `ingress.edge: ${edgeId}`;
  if (roles.includes('app')) return `${deploy}, which name its edge with \`${name}\``;
  return `next: \`systemctl restart caddy\`, \`reeve doctor\`; services name this edge with \`${name}\``;
}

/** The configuration stands by now, so a failure here is told together with what makes it good. */
async function switchOn(
  base: BaseContext,
  cluster: ClusterConfig,
): Promise<{ lines: readonly string[]; failed: boolean }> {
  try {
    return { lines: (await startUnits(base, { cluster })) ?? [], failed: false };
  } catch (error) {
    if (!(error instanceof ReeveError)) throw error;
    base.log.error(error.message);
    const advice =
      'the units are not as this configuration wants them: `reeve units render --write` tries again';
    return { lines: [advice], failed: true };
  }
}

/** What was rendered goes through the same gate as what people write; only flags can be wrong in it. */
function compileText(base: BaseContext, text: string): ClusterConfig & { nodeId: string } {
  const source = describeSource(base.paths.configFile, Buffer.from(text), 0o600);
  const { config, problems } = compileConfig(source, base);
  const [problem] = problems;
  if (problem !== undefined) throw new UsageError(`cannot write a configuration: ${problem.message}`);
  for (const warning of config.warnings) base.log.warning(warning);
  return requireNode(config);
}

async function requireAbsent(path: string): Promise<void> {
  try {
    await lstat(path);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'ENOENT') return;
    throw new ConfigError(`cannot write ${path}: ${describeError(error)}`, { cause: error });
  }
  throw existsError(path);
}

function existsError(path: string): ConfigError {
  return new ConfigError(
    `cannot write ${path}: it is there already, and init overwrites nothing: move it aside for a new one`,
    {
      code: 'exists',
    },
  );
}

/** A link fails where the name is taken, whoever was faster. */
async function writeNew(path: string, text: string): Promise<void> {
  const temporary = join(dirname(path), `.reeve-init-${randomBytes(6).toString('hex')}.tmp`);
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o755 });
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
      const { size } = await file.stat();
      if (size !== Buffer.byteLength(text)) throw new InternalError(`${temporary} is cut`);
    } finally {
      await file.close();
    }
    await link(temporary, path);
  } catch (error) {
    if (systemErrorCode(error) === 'EEXIST') throw existsError(path);
    throw new ConfigError(`cannot write ${path}: ${describeError(error)}`, { cause: error });
  } finally {
    await rm(temporary, { force: true });
  }
}
