import { describe, expect, it } from 'vitest';
import { renderDropIns } from '../../../src/lib/systemd/render.ts';
import { createConfigHome } from '../../support/config-home.ts';

/** What the timer of heartbeats is told, without comments. */
async function timerOf(sections: object): Promise<string[]> {
  const { cluster, jobs, commands } = await (await createConfigHome(JSON.stringify(sections))).load();
  const dropIns = renderDropIns({
    ...(cluster === undefined ? {} : { cluster }),
    ...(jobs === undefined ? {} : { jobs }),
    ...(commands === undefined ? {} : { commands }),
  });
  const text = dropIns.find(({ unit }) => unit === 'reeve-heartbeat.timer')?.text ?? '';
  return text.split('\n').filter((line) => /^On/.test(line));
}

const commands = { machine_id: 7, token: 't', central_base_url: 'https://agenda.example' };
const cluster = { nodeId: 'web-1', store: 'file:///var/lib/reeve/store' };
const jobs = { server_url: 'https://ploy.example', node_id: 'node-1' };

describe('the timer of heartbeats of a machine with commands', () => {
  it('A34: fires at once where no tick has to come first, and every 15 s', async () => {
    expect(await timerOf({ commands })).toEqual(['OnActiveSec=', 'OnActiveSec=1s', 'OnUnitInactiveSec=15s']);
  });

  it('A22: fires as often as it is told', async () => {
    const slower = { ...commands, heartbeat_interval: '1m30s' };
    expect(await timerOf({ commands: slower })).toContain('OnUnitInactiveSec=90s');
  });

  it('A22: fires as often as the most impatient of all sections wants', async () => {
    expect(await timerOf({ commands, cluster, jobs })).toContain('OnUnitInactiveSec=15s');
    const slower = { ...commands, heartbeat_interval: '1m' };
    expect(await timerOf({ commands: slower, cluster, jobs })).toEqual([]);
  });
});
