import { describe, expect, it } from 'vitest';
import { type DropIn, findEnabled, renderDropIns } from '../../../src/lib/systemd/render.ts';
import { createConfigHome } from '../../support/config-home.ts';

const agenda = { machine_id: 7, token: 'tok-3f9c' };
const cluster = { nodeId: 'web-1', store: 'file:///var/lib/reeve/store' };
const ploy = { server_url: 'https://ploy.example', node_id: 'node-1' };

async function render(sections: object): Promise<DropIn[]> {
  return renderDropIns(await (await createConfigHome(JSON.stringify(sections))).load());
}

/** Without comments and empty lines. */
async function settings(sections: object, unit: string): Promise<string[]> {
  const dropIn = (await render(sections)).find((other) => other.unit === unit);
  return dropIn?.text.split('\n').filter((line) => line !== '' && !line.startsWith('#')) ?? [];
}

describe('a node with commands', () => {
  it('is switched on by its section, beside the others', async () => {
    const home = await createConfigHome(JSON.stringify({ cluster, jobs: ploy, commands: agenda }));
    expect(findEnabled(await home.load())).toEqual([
      'reeve-app.target',
      'reeve-jobs.target',
      'reeve-commands.target',
      'reeve-proxy.socket',
      'reeve-proxy.service',
    ]);
  });

  it.each([
    ['127.0.0.1:7100', undefined],
    ['localhost:7100', undefined],
    ['10.0.0.5:7100', '10.0.0.5:7100'],
    ['[fd00::5]:9000', '[fd00::5]:9000'],
  ])('is called at %s (A10)', async (address, stream) => {
    const found = await settings(
      { commands: { ...agenda, listen_addr: address } },
      'reeve-api-commands.socket',
    );
    expect(found).toEqual(
      stream === undefined ? [] : ['[Socket]', 'ListenStream=', `ListenStream=${stream}`],
    );
  });

  it('reads the certificate of its API where that is, and commands need no leave for it', async () => {
    const tls = { cert_path: '/home/agenda/pki/api.crt', key_path: '/home/agenda/pki/api.key' };
    const sections = { commands: { ...agenda, tls } };
    expect(await settings(sections, 'reeve-api-commands.service')).toContain(
      'BindReadOnlyPaths=-/home/agenda/pki',
    );
    expect(await settings(sections, 'reeve-command@.service')).toEqual([]);
    expect(await settings(sections, 'reeve-heartbeat.service')).toEqual([]);
  });

  it('gives units of other sections nothing, and is given nothing by them', async () => {
    const tls = { cert_path: '/home/agenda/pki/api.crt', key_path: '/home/agenda/pki/api.key' };
    const units = (await render({ commands: { ...agenda, tls } })).map(({ unit }) => unit);
    expect(units.filter((unit) => /claim|job|reconcile|edge|backup/.test(unit))).toEqual([]);
  });

  it('confines commands by nothing, wherever the configuration is', async () => {
    const home = await createConfigHome(JSON.stringify({ commands: agenda }));
    const dropIns = renderDropIns(await home.load(), '/home/agenda/reeve.yaml');
    const text = dropIns.find(({ unit }) => unit === 'reeve-command@.service')?.text.split('\n') ?? [];
    expect(text.filter((line) => line !== '' && !line.startsWith('#'))).toEqual([
      '[Service]',
      'Environment=REEVE_CONFIG=/home/agenda/reeve.yaml',
    ]);
  });
});
