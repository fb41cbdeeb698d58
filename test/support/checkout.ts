// A checkout of services with compose files in a temporary directory, and scripts/deploy-service.sh run on it against a real
// engine. Containers and networks of its projects go when the test ends.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { onTestFinished } from './after-test.ts';
import { docker, engineSocket, untilRemoved } from './engine.ts';
import { type Program, type ProgramEnd, startProcess } from './programs.ts';
import { makeTempDir } from './temp.ts';

export type ComposeContainer = {
  id: string;
  name: string;
  state: string;
  env: readonly string[];
  labels: Readonly<Record<string, string>>;
  /** `SOURCE:TARGET`. */
  binds: readonly string[];
  health?: string;
};

export type Checkout = {
  readonly root: string;
  readonly dir: string;
  readonly config: string;
  /** A file below the root; the checkout is `checkout/`, the machine's own files are `config/`. */
  write(name: string, content: string, mode?: number): string;
  /** `services/<service>/docker-compose.yml`, as JSON, which YAML is. */
  writeCompose(service: string, services: object): void;
  /** Runs the script to its end. */
  deploy(words: readonly string[], env?: Readonly<Record<string, string>>): Promise<ProgramEnd>;
  /** As the leader of a process group. `under`: a program, with its arguments, that runs the script. */
  startDeploy(
    words: readonly string[],
    env?: Readonly<Record<string, string>>,
    under?: readonly string[],
  ): Program;
  /** What a person would type in the directory of the service. */
  byHand(service: string, words: readonly string[]): string;
  containers(project: string): ComposeContainer[];
  /** A program that comes before all others of its name, and calls the real one as `$REAL`. */
  writeProgram(name: string, body: string): void;
};

const scripts = resolve(import.meta.dirname, '../../scripts');
const script = join(scripts, 'deploy-service.sh');
const systemPath = '/usr/sbin:/usr/bin:/sbin:/bin';

/** `v2`: with the plugin of scripts/compose; else there is the one of Debian 12 alone. */
export function makeCheckout(projects: readonly string[], compose: 'v1' | 'v2' = 'v1'): Checkout {
  const root = makeTempDir();
  const [dir, config, programs] = [join(root, 'checkout'), join(root, 'config'), join(root, 'bin')];
  for (const made of [dir, config, programs]) mkdirSync(made);
  onTestFinished(() => untilRemoved(() => projects.forEach(removeProject)));
  const environment = {
    PATH: `${programs}:${systemPath}`,
    DOCKER_HOST: `unix://${engineSocket()}`,
    ...(compose === 'v1' ? {} : { DOCKER_CONFIG: findPlugin() }),
    REEVE_NODE: 'web-1',
    REEVE_HOMELAB_CONFIG: config,
    REEVE_CHECKOUT: dir,
  };
  const write: Checkout['write'] = (name, content, mode = 0o644) => {
    const path = join(root, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    chmodSync(path, mode);
    return path;
  };
  const startDeploy: Checkout['startDeploy'] = (words, env = {}, under = []) =>
    startProcess('/usr/bin/setsid', ['--wait', ...under, script, ...words], { ...environment, ...env });
  return {
    ...{ root, dir, config, write, startDeploy },
    writeCompose: (service, services) =>
      void write(
        `checkout/services/${service}/docker-compose.yml`,
        JSON.stringify({ version: '2.4', services }),
      ),
    deploy: (words, env) => startDeploy(words, env).ended,
    byHand: (service, words) =>
      execFileSync(...composeCommand(compose, words), {
        cwd: join(dir, 'services', service),
        env: { ...process.env, ...environment, PATH: systemPath },
        stdio: ['ignore', 'pipe', 'pipe'],
        encoding: 'utf8',
      }),
    containers: listContainers,
    writeProgram: (name, body) =>
      void write(`bin/${name}`, `#!/bin/sh\nREAL=/usr/bin/${name}\n${body}\n`, 0o755),
  };
}

function composeCommand(compose: 'v1' | 'v2', words: readonly string[]): [string, readonly string[]] {
  return compose === 'v1' ? ['docker-compose', words] : ['docker', ['compose', ...words]];
}

function findPlugin(): string {
  return execFileSync(join(scripts, 'compose'), { encoding: 'utf8' }).trim();
}

/** Lines that a program of `writeProgram` has written down. */
export function readLines(path: string): string[] {
  return readFileSync(path, 'utf8').trimEnd().split('\n');
}

function listContainers(project: string): ComposeContainer[] {
  const ids = listIds(project);
  if (ids.length === 0) return [];
  const found = JSON.parse(docker(engineSocket(), ['inspect', '--type', 'container', ...ids]));
  return found
    .map(toContainer)
    .sort((a: ComposeContainer, b: ComposeContainer) => (a.name < b.name ? -1 : 1));
}

function listIds(project: string): string[] {
  const filter = `label=com.docker.compose.project=${project}`;
  return docker(engineSocket(), ['ps', '-aq', '--no-trunc', '--filter', filter])
    .split('\n')
    .filter((id) => id !== '');
}

// biome-ignore lint/suspicious/noExplicitAny: the engine's own document
function toContainer(raw: any): ComposeContainer {
  const { Health: health } = raw.State;
  return {
    id: raw.Id,
    name: raw.Name.slice(1),
    state: raw.State.Status,
    env: raw.Config.Env,
    labels: raw.Config.Labels,
    binds: raw.Mounts.map(
      ({ Source, Destination }: { Source: string; Destination: string }) => `${Source}:${Destination}`,
    ),
    ...(health === undefined ? {} : { health: health.Status }),
  };
}

function removeProject(project: string): void {
  const socket = engineSocket();
  const ids = listIds(project);
  if (ids.length > 0) docker(socket, ['rm', '-fv', ...ids]);
  const filter = `label=com.docker.compose.project=${project}`;
  const networks = docker(socket, ['network', 'ls', '-q', '--filter', filter]).split('\n').filter(Boolean);
  if (networks.length > 0) docker(socket, ['network', 'rm', ...networks]);
}
