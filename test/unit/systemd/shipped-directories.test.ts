import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { shippedDirectory } from '../../support/unit-files.ts';

describe('directories', () => {
  it('of locks and wakes are made by tmpfiles.d, for root alone (O47)', () => {
    const lines = readFileSync(join(shippedDirectory, 'reeve.conf'), 'utf8')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => line.split(/\s+/).slice(0, 3).join(' '));
    expect(lines).toEqual([
      'd /run/reeve 0755',
      'd /run/reeve/locks 0750',
      'f /run/reeve/locks/reconcile.lock 0640',
      'f /run/reeve/locks/heartbeat.lock 0640',
      'f /run/reeve/locks/claim.lock 0640',
      'f /run/reeve/locks/backup.lock 0640',
      'f /run/reeve/locks/edge.lock 0640',
      'f /run/reeve/locks/listen.lock 0640',
      'f /run/reeve/locks/rsync-pull.lock 0640',
      'f /run/reeve/locks/deploy-action.lock 0640',
      'f /run/reeve/locks/action.lock 0640',
      'f /run/reeve/locks/install.lock 0640',
      'f /run/reeve/locks/slots.lock 0640',
      'f /run/reeve/locks/bootstrap.lock 0640',
      'f /run/reeve/locks/proxy.lock 0640',
      'f /run/reeve/locks/status.lock 0640',
      'd /run/reeve/wake 0750',
      'd /run/reeve/proxy 0755',
      'd /var/lib/reeve 0700',
      'd /var/cache/reeve 0755',
      'd /var/log/reeve 0750',
      'd /var/backups/reeve 0700',
    ]);
  });
});
