// Services of one run: what ends the turn of one does not keep the others from theirs.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import {
  aDatabaseDeploy,
  listBackups,
  openDatabase,
  waitForDatabase,
} from '../../support/database-service.ts';
import { engineSocket } from '../../support/engine.ts';
import { makeNode } from '../../support/node.ts';
import { buildPostgresImage, imageMs } from '../../support/postgres.ts';

it(
  'a run that cannot write its history makes the sets of all services, and fails (O6)',
  async () => {
    buildPostgresImage(engineSocket());
    const node = makeNode({ project: 'siblings' });
    const services = ['one', 'two'];
    await node.deploy(
      services.map((service) =>
        aDatabaseDeploy({
          service,
          database: { engine: 'postgres', version: '15', databases: ['postgres'] },
        }),
      ),
    );
    expect((await node.reeve('reconcile')).status).toBe(0);
    for (const service of services)
      await waitForDatabase(openDatabase(node, `launchpad_siblings_${service}_0`));
    rmSync(join(node.stateDir, 'history.ndjson'), { force: true });
    mkdirSync(join(node.stateDir, 'history.ndjson'));
    const end = await node.reeve('backup', '--now');
    expect(end.status, end.stderr).not.toBe(0);
    expect(end.stderr).toContain('history.ndjson');
    const manifests = listBackups(node).filter((path) => path.endsWith('/manifest.json'));
    expect(manifests.map((path) => path.split('/')[2])).toEqual(services);
  },
  imageMs,
);
