// The text of a new node's configuration: every key of the section `cluster` with its value or, commented out, its
// default, and the other sections to be filled in. Pure.

import type { Role } from '../config/config.ts';
import { renderScalar } from '../config/yaml-text.ts';

export type ConfigAnswers = {
  nodeId: string;
  roles: readonly Role[];
  clusterId: string;
  store: string;
  region: string;
  endpoint?: string;
  secrets: string;
  notify: 'none' | 'sns';
  logs: string;
  backups: string;
};

export function renderConfig(answers: ConfigAnswers): string {
  return `${[...renderCluster(answers), ...renderOtherSections(answers)].join('\n')}\n`;
}

function renderCluster(answers: ConfigAnswers): string[] {
  const isEdge = answers.roles.includes('edge');
  const isBoth = answers.roles.length > 1;
  return [
    '# The configuration of reeve on this machine. `reeve config check` says what is wrong with it,',
    '# `reeve config show` what holds, defaults and environment included. Lines with one # are defaults.',
    '',
    answers.roles.includes('app')
      ? '# What this node runs, as deployed with `reeve deploy`.'
      : '# What this edge routes: the domains of the services that name it, on other nodes.',
    'cluster:',
    ...setting(`nodeId: ${renderScalar(answers.nodeId)}`),
    ...setting(`clusterId: ${renderScalar(answers.clusterId)}`),
    ...setting(
      `role: ${isBoth ? `[${answers.roles.join(', ')}]` : answers.roles[0]}`,
      'app | edge | [app, edge]',
    ),
    ...(isBoth
      ? fallback(`edgeId: ${renderScalar(`${answers.nodeId}-edge`)}`, 'the id of its edge in the store')
      : []),
    ...setting(`region: ${renderScalar(answers.region)}`),
    ...fallback('advertiseIp: 10.0.0.5', 'where other machines reach this one; found if left out'),
    ...fallback('publish: 0.0.0.0', 'or "advertise": bind published ports to advertiseIp only'),
    ...setting(`store: ${renderScalar(answers.store)}`, 'desired state and status; or s3://bucket[/prefix]'),
    ...(answers.endpoint === undefined
      ? []
      : setting(`endpoint: ${renderScalar(answers.endpoint)}`, 'of the S3-compatible service')),
    ...setting(
      `secrets: ${renderScalar(answers.secrets)}`,
      answers.secrets === 'ssm' ? 'or file:///DIRECTORY' : 'one file a secret, mode 0600; or ssm',
    ),
    ...(answers.notify === 'none' ? fallback('notify: none', 'or sns') : setting('notify: sns', 'or none')),
    ...setting(`logs: ${renderScalar(answers.logs)}`, 'or cloudwatch'),
    ...setting(`backups: ${renderScalar(answers.backups)}`, 'for services whose backup names no bucket'),
    ...fallback('intervals: { tick: 60s, liveness: 30s, stats: 60s, edge: 60s }'),
    ...fallback('docker: { socket: /var/run/docker.sock, parallel: 4 }'),
    ...(isEdge ? renderEdgeSettings() : []),
  ];
}

function renderEdgeSettings(): string[] {
  return [
    '  # caddy.issuer: acme, with `email: YOU@EXAMPLE.COM` for its account; internal: Caddy signs itself, for private networks',
    ...fallback('caddy: { admin: "http://127.0.0.1:2019", httpPort: 80, httpsPort: 443, issuer: acme }'),
    ...fallback('balancer: auto', 'haproxy (behind Caddy) where it is installed, else caddy alone'),
    ...fallback('haproxy: { address: "127.0.0.1:7300", directory: /run/reeve-balancer }'),
  ];
}

function renderOtherSections({ nodeId }: ConfigAnswers): string[] {
  return [
    '',
    '# Jobs of a ploy control plane.',
    '#jobs: { file: /etc/ploy/ployd-node.yaml }',
    '',
    '# Commands and the proxy of an agenda control plane; or `file: /etc/agenda-node/agenda-node.yaml`, which has the same keys.',
    '#commands:',
    '#  machine_id: 7',
    '#  token: THE-AGENT-TOKEN-OF-THIS-MACHINE-THERE',
    '#  central_base_url: https://agenda.example',
    '',
    '# Redeploys that an operator has approved.',
    '#actions:',
    `#  node: ${renderScalar(nodeId)}`,
    `#  pull: deploy@control:/opt/homelab/actions/deploy/${nodeId}/`,
    `#  push: deploy@control:/opt/homelab/events/${nodeId}/`,
    '#  checkout: /opt/homelab/checkout',
    '#  timeout: 600s',
    '',
    '# What is told when a unit fails.',
    '#hooks:',
    '#  failure: { command: [/usr/local/bin/page, "{unit}"], timeout: 10s }',
  ];
}

function setting(text: string, comment?: string): string[] {
  return [withComment(`  ${text}`, comment)];
}

function fallback(text: string, comment?: string): string[] {
  return [withComment(`  #${text}`, comment)];
}

function withComment(text: string, comment: string | undefined): string {
  return comment === undefined ? text : `${text.padEnd(46)}  # ${comment}`;
}
