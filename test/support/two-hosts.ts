// Two booted machines with a network of their own between them: a control host with the tree of actions and a real sshd, and a node
// with an engine, compose and a checkout. Set up as the runbook says; what happens from then on is systemd's doing.
import { spawnSync } from 'node:child_process';
import { type Host, startHost } from './host.ts';
import { provision } from './installed.ts';

const nodeName = 'web-1';
const root = '/opt/homelab';
const actions = `${root}/actions`;
const events = `${root}/events/${nodeName}`;
const inbox = `${actions}/deploy/${nodeName}`;
export const checkout = `${root}/checkout`;
const addresses = { control: '10.98.0.1', node: '10.98.0.2' };

export type ActionFile = Readonly<Record<string, unknown>> & {
  transition_history: readonly { from: string; to: string; by: string }[];
};

export type Container = {
  id: string;
  /** Undefined where it has no health check. */
  health: string | undefined;
  /** What a deploy leaves as it is: names and places, and the digest that compose makes of its configuration. */
  same: { name: string; project: string; directory: string; files: string; mounts: string[]; config: string };
};

export type TwoHosts = {
  readonly control: Host;
  readonly node: Host;
  /**
   * A service of the checkout, deployed once by hand: by compose alone, from its directory. More lines for its part of the compose
   * file, and a `healthcheck.sh`.
   */
  addService(service: string, more?: { lines?: readonly string[]; healthcheck?: string }): Promise<void>;
  /**
   * Has all deploys done by a script of the checkout that only tells that it has begun and ended; services without compose files to
   * speak of.
   */
  useTeller(services: readonly string[]): Promise<void>;
  /** What it has told, a line each: `begin SERVICE` with all that it was given, and `end SERVICE`. */
  told(): Promise<string[]>;
  /** As the supervisor does. Gives the action's id. */
  propose(service: string, over?: Readonly<Record<string, unknown>>): Promise<string>;
  approve(actionId: string): Promise<void>;
  /** In which directory it is; undefined where it is in none. Throws where it is in two. */
  stateOf(actionId: string): Promise<string | undefined>;
  read(actionId: string): Promise<ActionFile>;
  /** Waits until it has ended; gives the state. */
  settled(actionId: string, timeoutMs?: number): Promise<string>;
  container(service: string): Promise<Container>;
  cutLink(): void;
  healLink(): void;
  /** Ends one of the machines at once, boots it again, and plugs the cable in. */
  losePower(which: 'control' | 'node'): Promise<void>;
  stop(): void;
};

export async function startTwoHosts(): Promise<TwoHosts> {
  const control = startHost('control');
  let node: Host | undefined;
  const stop = (): void => {
    node?.stop();
    control.stop();
  };
  try {
    node = startHost(nodeName);
    joinHosts(control, node);
    await Promise.all([prepareControl(control), prepareNode(node)]);
    await introduce(control, node);
    for (const host of [control, node]) await host.output(['reeve', 'units', 'render', '--write']);
    return describe(control, node, stop);
  } catch (error) {
    stop();
    throw error;
  }
}

/** A cable between the two: a pair of interfaces, one in each machine's network. */
function joinHosts(control: Host, node: Host): void {
  const [here, there] = [control.leader(), node.leader()];
  // One that is left by a machine that has gone goes with its other end, at some time.
  inNetwork(here, 'ip link delete link0 2>/dev/null || true');
  inNetwork(there, 'ip link delete link0 2>/dev/null || true');
  inNetwork(here, `ip link add link0 type veth peer name link0 netns ${there}`);
  inNetwork(here, `ip address add ${addresses.control}/24 dev link0; ip link set link0 up`);
  inNetwork(there, `ip address add ${addresses.node}/24 dev link0; ip link set link0 up`);
}

function inNetwork(leader: number, script: string): void {
  const { status, stderr } = spawnSync('nsenter', ['-t', `${leader}`, '-n', 'sh', '-euc', script], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${script} ended with ${status}: ${stderr}`);
}

async function prepareControl(host: Host): Promise<void> {
  const directory = await provision(host);
  await host.sh(`
    useradd --uid 1000 --create-home --shell /bin/sh deploy
    mkdir -p ${actions}/pending ${inbox} ${events}
    chown -R deploy: ${root}
    find ${root} -type d -exec chmod g+ws {} +
    systemctl enable --now ssh 2>/dev/null
  `);
  await host.output([`${directory}/scripts/install`]);
  await host.write('/etc/reeve/reeve.yaml', `${JSON.stringify({ actions: { root: actions } })}\n`, '0600');
}

async function prepareNode(host: Host): Promise<void> {
  const directory = await provision(host);
  await host.output([`${directory}/scripts/install`]);
  const section = {
    ...{ node: nodeName, checkout },
    pull: `deploy@control:${inbox}/`,
    push: `deploy@control:${events}/`,
  };
  await host.write('/etc/reeve/reeve.yaml', `${JSON.stringify({ actions: section })}\n`, '0600');
  await host.write(`${checkout}/hosts/${nodeName}/services.yaml`, 'services: []\n');
}

/** Keys and names, as the runbook has it: made on the node, let in on the control host for one directory and one way each. */
async function introduce(control: Host, node: Host): Promise<void> {
  await node.sh(`
    install -d -m 0700 /etc/reeve/ssh
    for key in pull push; do ssh-keygen -q -t ed25519 -N '' -C ${nodeName}-$key -f /etc/reeve/ssh/$key; done
    echo '${addresses.control} control' >>/etc/hosts
  `);
  const allowed = {
    pull: `rrsync -ro -munge -absolute ${inbox}`,
    push: `rrsync -wo -no-del -munge -absolute ${events}`,
  };
  const lines = Object.entries(allowed).map(async ([key, command]) => {
    return `restrict,command="${command}" ${await node.read(`/etc/reeve/ssh/${key}.pub`)}`;
  });
  await control.write('/home/deploy/.ssh/authorized_keys', (await Promise.all(lines)).join(''), '0600');
  await control.sh('chown -R deploy: /home/deploy/.ssh; chmod 0700 /home/deploy/.ssh');
  const hostKey = await control.read('/etc/ssh/ssh_host_ed25519_key.pub');
  await node.write('/etc/reeve/ssh/known_hosts', `control ${hostKey.split(' ').slice(0, 2).join(' ')}\n`);
}

const toldFile = '/var/lib/told';
/** A line is there as a whole or not at all. What is given to it beside the name of the service is told as well. */
const tellerText = `#!/bin/sh
for last; do :; done
tell() { echo "$*" >>${toldFile}; sync ${toldFile}; }
tell "begin $last args=$* env=$(env | cut -d= -f1 | sort | tr '\\n' ',')"
sleep 0.4
tell "end $last"
`;

async function writeServices(node: Host, names: readonly string[]): Promise<void> {
  const list = names.map((name) => `  - name: ${name}\n`).join('');
  await node.write(`${checkout}/hosts/${nodeName}/services.yaml`, `services:\n${list}`);
}

function describe(control: Host, node: Host, stop: () => void): TwoHosts {
  const services: string[] = [];
  const stateOf = async (actionId: string): Promise<string | undefined> => {
    const found = await control.sh(`cd ${actions}; ls -d */${actionId}.json 2>/dev/null || true`);
    const states = found.split('\n').flatMap((path) => (path === '' ? [] : [path.split('/', 1)[0]]));
    if (states.length > 1) throw new Error(`${actionId} is in ${states.join(' and ')}`);
    return states[0];
  };
  const read = async (actionId: string): Promise<ActionFile> => {
    const state = await stateOf(actionId);
    return JSON.parse(await control.read(`${actions}/${state}/${actionId}.json`));
  };
  return {
    ...{ control, node, stop, stateOf },
    addService: async (service, { lines = [], healthcheck } = {}) => {
      services.push(service);
      const directory = `${checkout}/services/${service}`;
      const part = [`image: reeve-demo/box:v1`, 'command: ["sleep", "100000"]', 'init: true', ...lines];
      const compose = ['version: "3"', 'services:', '  main:', ...part.map((line) => `    ${line}`), ''];
      await node.write(`${directory}/docker-compose.yml`, compose.join('\n'));
      if (healthcheck !== undefined) await node.write(`${directory}/healthcheck.sh`, healthcheck, '0755');
      await writeServices(node, services);
      await node.sh(`cd ${directory} && docker-compose up -d`);
    },
    useTeller: async (names) => {
      services.push(...names);
      await node.write(`${checkout}/scripts/tell.sh`, tellerText, '0755');
      await node.sh(`
        cd ${checkout}
        for service in ${names.join(' ')}; do
          mkdir -p services/$service; echo 'services: {}' >services/$service/docker-compose.yml
        done
        sed -i 's#"node":#"script":"scripts/tell.sh","node":#' /etc/reeve/reeve.yaml
      `);
      await writeServices(node, services);
    },
    told: async () => (await node.sh(`cat ${toldFile} 2>/dev/null || true`)).split('\n').filter(Boolean),
    propose: async (service, over = {}) => {
      const actionId = `redeploy-${nodeName}-${service}`;
      const seconds = Math.floor(Date.now() / 1000);
      const action = {
        ...{ action_id: actionId, type: 'redeploy', node: nodeName, service, risk: 'guarded' },
        ...{ status: 'pending', created_at: seconds, updated_at: seconds },
        details: { reason: 'unhealthy' },
        transition_history: [],
        ...over,
      };
      await control.write(`${actions}/.new.json`, JSON.stringify(action));
      await control.sh(
        `chown deploy: ${actions}/.new.json; mv ${actions}/.new.json ${actions}/pending/${actionId}.json`,
      );
      return actionId;
    },
    approve: async (actionId) => {
      await control.output(['reeve', 'action', 'approve', '--yes', actionId]);
    },
    read,
    settled: async (actionId, timeoutMs = 120_000) =>
      await control.waitFor(
        `the end of ${actionId}`,
        async () => {
          const state = await stateOf(actionId);
          if (state !== 'completed' && state !== 'failed') return undefined;
          // What it says of its end comes a moment after the move.
          return (await read(actionId)).transition_history.at(-1)?.to === state ? state : undefined;
        },
        { timeoutMs, everyMs: 250 },
      ),
    container: async (service) => {
      const filter = `label=com.docker.compose.project=${service}`;
      const id = (await node.output(['docker', 'ps', '-q', '--no-trunc', '--filter', filter])).trim();
      const [about] = JSON.parse(await node.output(['docker', 'inspect', id]));
      const label = (name: string): string => about.Config.Labels[`com.docker.compose.${name}`];
      return {
        id,
        health: about.State.Health?.Status,
        same: {
          name: about.Name,
          project: label('project'),
          directory: label('project.working_dir'),
          files: label('project.config_files'),
          mounts: about.Mounts.map(
            (mount: Record<string, string>) => `${mount['Source']}:${mount['Destination']}`,
          ),
          config: label('config-hash'),
        },
      };
    },
    cutLink: () => inNetwork(node.leader(), 'ip link set link0 down'),
    healLink: () => inNetwork(node.leader(), 'ip link set link0 up'),
    losePower: async (which) => {
      await (which === 'node' ? node : control).losePower();
      joinHosts(control, node);
    },
  };
}
