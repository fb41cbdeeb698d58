import { describe, expect, it } from 'vitest';
import type { ServiceBackups } from '../../../src/lib/backup/state.ts';
import { findBackupFault } from '../../../src/lib/prune/plan-volume.ts';
import { aDump, aManifest, anInventory, aSet } from '../../support/inventories.ts';

const made = new Date('2026-06-01T00:00:00Z');
const recorded = (lastError: string | null): ServiceBackups => ({
  ...{ lastRunAt: null, lastSuccessAt: null, lastError, databases: {} },
});

describe('the backup of a volume', () => {
  it('is a whole set that is newer than the volume, where no attempt has failed since', () => {
    const inventory = anInventory([
      aDump('2026-05-01'),
      aDump('2026-06-02'),
      aDump('2026-06-02', { database: 'b' }),
    ]);
    expect(findBackupFault(inventory, recorded(null), made)).toBeUndefined();
    expect(findBackupFault(inventory, undefined, made)).toBeUndefined();
    expect(findBackupFault(inventory, recorded('refused'), made)).toBe('the last attempt failed: refused');
  });

  it.each([
    ['nothing', anInventory([]), 'it has none'],
    [
      'what nothing says to be whole',
      anInventory([aDump('2026-06-02', { level: 'uploaded' })], { sets: [] }),
      'it has none',
    ],
    [
      'an older one',
      anInventory([aDump('2026-05-01')]),
      'the last one is of 2026-05-01T03-00-00Z, the volume of 2026-06-01T00:00:00.000Z',
    ],
    [
      'one that was found broken',
      anInventory([aDump('2026-06-02', { level: 'broken', fault: 'it is cut' }), aDump('2026-06-01')]),
      'that of 2026-06-02T03-00-00Z is not whole: "app": it is cut',
    ],
    [
      'one that lacks a database',
      anInventory([aDump('2026-06-02')], {
        sets: [
          aSet([aDump('2026-06-02')], {
            manifest: aManifest(new Date('2026-06-02T03:00:00Z'), {
              failures: [{ database: 'b', error: 'refused' }],
            }),
          }),
        ],
      }),
      'that of 2026-06-02T03-00-00Z is not whole: refused',
    ],
  ])('is not %s', (_, inventory, fault) => {
    expect(findBackupFault(inventory, undefined, made)).toBe(fault);
  });

  it('is none where the age of the volume is unknown', () => {
    expect(findBackupFault(anInventory([aDump('2026-06-02')]), undefined, undefined)).toBe(
      "the last one is of 2026-06-02T03-00-00Z, and the volume's age is unknown",
    );
  });
});
