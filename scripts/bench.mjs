// The measurements of scripts/bench: `node scripts/bench.mjs DIRECTORY ROUNDS`, with an engine in DIRECTORY/engine-small
// for 30 services and one in DIRECTORY/engine-large for 300. Commands that are compared run in turn; medians count.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { join, relative } from 'node:path';

const [directory, roundsWord] = process.argv.slice(2);
const rounds = Number(roundsWord);
const reeve = new URL('../bin/reeve', import.meta.url).pathname;
const rows = [];

const small = openNode('small');
const large = openNode('large');
fill(small, 30);
fill(large, 300);
measureTicks(composeOf(small, 30));
await measureOneTick(small);
measureMemory(large);
measureStart(small);
printTable();
process.exitCode = rows.some(({ kept }) => kept === false) ? 1 : 0;

/** A node of its own. */
function openNode(name) {
  const home = join(directory, name);
  const socket = join(directory, `engine-${name}`, 'docker.sock');
  mkdirSync(join(home, 'run/locks'), { recursive: true });
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    REEVE_CONFIG: join(home, 'reeve.yaml'),
    REEVE_STATE: join(home, 'state'),
    REEVE_RUN: join(home, 'run'),
    REEVE_CACHE: join(home, 'cache'),
  };
  const node = { home, socket, env };
  run(node, [reeve, 'init', '--node', 'bench', '--store', `file://${home}/store`]);
  writeConfig(env.REEVE_CONFIG, home, socket);
  return node;
}

function writeConfig(file, home, socket) {
  const cluster = {
    nodeId: 'bench',
    advertiseIp: '127.0.0.1',
    store: `file://${home}/store`,
    docker: { socket, parallel: 8 },
  };
  writeFileSync(file, `${JSON.stringify({ cluster })}\n`);
}

function fill(node, count) {
  step(`creating ${count} containers`);
  const file = join(node.home, 'services.yaml');
  writeFileSync(file, JSON.stringify({ services: serviceNames(count).map(describeService) }));
  run(node, [reeve, 'deploy', file]);
  run(node, [reeve, 'reconcile']);
  const ids = run(node, ['/usr/bin/docker', '-H', `unix://${node.socket}`, 'ps', '-q'])
    .trim()
    .split('\n');
  if (ids.length !== count) throw new Error(`${ids.length} of ${count} containers are running`);
}

function serviceNames(count) {
  return Array.from({ length: count }, (_, index) => `s${String(index + 1).padStart(3, '0')}`);
}

/** Thirty a project: each project has a network, and the engine gives one 253 addresses. */
function describeService(service, index) {
  const project = `bench-${Math.floor(index / 30) + 1}`;
  return { project, service, image: 'reeve-demo/box:v1', nodes: ['bench'] };
}

/** The same services for docker-compose, created and ready for an `up -d` that has nothing to do. */
function composeOf(node, count) {
  step(`creating the same ${count} with docker-compose`);
  const services = Object.fromEntries(
    serviceNames(count).map((name) => [name, { image: 'reeve-demo/box:v1', restart: 'unless-stopped' }]),
  );
  const file = join(node.home, 'docker-compose.yaml');
  writeFileSync(file, JSON.stringify({ version: '2.4', services }));
  const compose = ['/usr/bin/docker-compose', '-H', `unix://${node.socket}`, '-p', 'compose', '-f', file];
  const up = [...compose, 'up', '-d'];
  run(node, up);
  return { node, argv: up };
}

function measureTicks(compose) {
  step('timing idle ticks');
  const times = measureInTurn({
    small: () => tick(small),
    large: () => tick(large),
    compose: () => run(compose.node, compose.argv),
  });
  report('idle tick, 30 services', formatMs(times.small));
  report('docker-compose up -d, the same 30', formatMs(times.compose));
  reportRatio('  how many times faster', times.compose / times.small, { atLeast: 4 });
  report('tick at 300 containers', formatMs(times.large));
  reportRatio('  how many times as long as at 30', times.large / times.small, { below: 3 });
}

function tick(node) {
  const output = run(node, [reeve, 'reconcile']);
  if (!output.startsWith('nothing to do')) throw new Error(`a tick that should be idle said: ${output}`);
}

/** What one idle tick asks the engine, and what it writes. */
async function measureOneTick(node) {
  step('counting what an idle tick does');
  const proxy = await openProxy(node.socket, join(node.home, 'proxy.sock'));
  const config = join(node.home, 'proxied.yaml');
  writeConfig(config, node.home, proxy.socket);
  const trace = join(node.home, 'trace');
  const strace = [
    'strace',
    '-f',
    '-qq',
    '-o',
    trace,
    '-e',
    'trace=openat,open,creat,rename,renameat,renameat2',
  ];
  const argv = [...strace, reeve, 'reconcile'];
  await runLive({ ...node.env, REEVE_CONFIG: config }, [reeve, 'reconcile']);
  proxy.requests.length = 0;
  await runLive({ ...node.env, REEVE_CONFIG: config }, argv);
  proxy.close();
  const { requests } = proxy;
  report('engine requests of an idle tick', requests.join(', '), 'one', requests.length === 1);
  const written = listWritten(readFileSync(trace, 'utf8'), node.home);
  const isMeant = (file) => /^(state\/runs\/reconcile\.json(\.previous)?|run\/locks\/.*\.lock)$/.test(file);
  report('files it writes', written.join(', '), 'run record, locks', written.every(isMeant));
}

/** Opened for writing or renamed into place, below the node's directory, without the staging files of the latter. */
function listWritten(trace, home) {
  const names = trace.split('\n').flatMap((line) => {
    const paths = [...line.matchAll(/"([^"]*)"/g)].map(([, path]) => path);
    if (/rename/.test(line)) return paths.slice(-1);
    return /O_WRONLY|O_RDWR|creat\(/.test(line) ? paths : [];
  });
  const own = names.filter((path) => path.startsWith(home)).map((path) => relative(home, path));
  return [...new Set(own)].filter((path) => !/^cache\/|\.tmp(\.\d+)?$/.test(path)).sort();
}

function measureMemory(node) {
  step('weighing a tick at 300 containers');
  const file = join(node.home, 'memory');
  run(node, ['/usr/bin/time', '-f', '%M', '-o', file, reeve, 'reconcile']);
  const megabytes = Number(readFileSync(file, 'utf8').trim()) / 1024;
  report('peak memory at 300 containers', `${megabytes.toFixed(1)} MB`, 'below 90 MB', megabytes < 90);
}

function measureStart(node) {
  step('timing starts');
  const empty = join(node.home, 'empty.js');
  writeFileSync(empty, '');
  const times = measureInTurn({
    empty: () => run(node, [process.execPath, empty]),
    version: () => run(node, [reeve, '--version']),
    config: () => run(node, [reeve, 'config', 'show']),
  });
  report('an empty program', formatMs(times.empty));
  reportRatio('reeve --version, times as long', times.version / times.empty, { atMost: 1.5 });
  reportRatio('reeve config show, times as long', times.config / times.empty, { atMost: 2 });
}

/** Median milliseconds of each; the first round only warms up. */
function measureInTurn(cases) {
  const times = Object.fromEntries(Object.keys(cases).map((name) => [name, []]));
  for (let round = 0; round <= rounds; round += 1) {
    for (const [name, work] of Object.entries(cases)) {
      const started = performance.now();
      work();
      if (round > 0) times[name].push(performance.now() - started);
    }
  }
  return Object.fromEntries(Object.entries(times).map(([name, list]) => [name, median(list)]));
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

function run({ env }, [file, ...args]) {
  const result = spawnSync(file, args, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  if (result.error !== undefined) throw result.error;
  if (result.status !== 0)
    throw new Error(`${file} ${args.join(' ')} ended with ${result.status}:\n${result.stderr.slice(-2000)}`);
  return result.stdout;
}

/** As `run`, while our own server has to answer. */
async function runLive(env, [file, ...args]) {
  const { spawn } = await import('node:child_process');
  const child = spawn(file, args, { env, stdio: 'ignore' });
  const status = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
  if (status !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${status}`);
}

/** Passes requests on to the engine and records them. */
function openProxy(target, socket) {
  const requests = [];
  const server = createServer((incoming, outgoing) => {
    requests.push(`${incoming.method} ${incoming.url.replace(/\?.*/, '')}`);
    const { method, url, headers } = incoming;
    const onward = request({ socketPath: target, method, path: url, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(onward);
  });
  return new Promise((resolve) => {
    server.listen(socket, () => {
      resolve({ socket, requests, close: () => server.close(() => {}).closeAllConnections() });
    });
  });
}

function reportRatio(what, ratio, { atLeast, below, atMost }) {
  const text = `${ratio.toFixed(2)}x`;
  if (atLeast !== undefined) report(what, text, `at least ${atLeast}x`, ratio >= atLeast);
  else if (below !== undefined) report(what, text, `below ${below}x`, ratio < below);
  else report(what, text, `at most ${atMost}x`, ratio <= atMost);
}

function report(what, measured, wanted = '', kept = undefined) {
  rows.push({ what, measured, wanted, kept });
}

function formatMs(ms) {
  return ms < 1000 ? `${ms.toFixed(1)} ms` : `${(ms / 1000).toFixed(2)} s`;
}

function step(what) {
  process.stderr.write(`${what} ...\n`);
}

function printTable() {
  const verdict = { true: 'pass', false: 'FAIL' };
  const lines = rows.map(({ what, measured, wanted, kept }) => [what, measured, wanted, verdict[kept] ?? '']);
  const widths = [0, 1, 2].map((column) => Math.max(...lines.map((line) => line[column].length)));
  console.log(`\nmedians of ${rounds} rounds, commands in turn; Node.js ${process.version}\n`);
  for (const line of lines) {
    console.log(
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
  }
}
