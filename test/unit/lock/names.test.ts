import { describe, expect, it } from 'vitest';
import { InputError, UsageError } from '../../../src/lib/errors.ts';
import {
  commandLock,
  compareLockNames,
  isLockName,
  jobLock,
  type LockName,
  mayTakeInside,
  parseLockName,
  serviceLock,
} from '../../../src/lib/lock/names.ts';

describe('lock names', () => {
  it('are built from checked parts only', () => {
    expect(jobLock('J_1-a')).toBe('job@J_1-a');
    expect(commandLock('c1')).toBe('command@c1');
    expect(serviceLock({ project: 'blog', service: 'web' })).toBe('service@blog@web');
  });

  it('replace an id that could leave the directory by its sha256', () => {
    expect(jobLock('../../etc/passwd')).toMatch(/^job@[0-9a-f]{64}$/);
  });

  it.each(['../x', 'Web', '', 'a@b'])('refuse the service name %j', (service) => {
    expect(() => serviceLock({ project: 'blog', service })).toThrow(InputError);
  });

  it.each(['reconcile', 'job@J1', 'command@c', 'service@blog@web', 'proxy', 'status'])(
    'accept %s as typed',
    (name) => {
      expect(parseLockName(name)).toBe(name);
    },
  );

  it.each([
    '',
    'reconcile.lock',
    '../reconcile',
    'job@',
    'job@a@b',
    'service@blog',
    'service@blog@web@x',
    'Proxy',
  ])('refuse %j as typed and tell the known ones', (name) => {
    expect(isLockName(name)).toBe(false);
    expect(() => parseLockName(name)).toThrow(UsageError);
  });

  it('sort into the one order whatever the order in which they are given', () => {
    const order: LockName[] = [
      'backup',
      'reconcile',
      'command@c',
      'job@a',
      'service@a@b',
      'service@a-b@a',
      'service@b@a',
      'proxy',
      'status',
    ];
    expect([...order].reverse().sort(compareLockNames)).toEqual([...order].sort(compareLockNames));
    expect([...order].sort(compareLockNames).map((name) => name.split('@')[0])).toEqual([
      'backup',
      'reconcile',
      'command',
      'job',
      'service',
      'service',
      'service',
      'proxy',
      'status',
    ]);
  });

  it.each<[LockName, LockName, boolean]>([
    ['reconcile', 'service@a@a', true],
    ['reconcile', 'status', true],
    ['service@a@a', 'service@a@b', true],
    ['service@a@b', 'service@a@a', false],
    ['service@a@a', 'service@a@a', false],
    ['reconcile', 'backup', false],
    ['status', 'proxy', false],
    ['proxy', 'status', true],
    ['job@a', 'job@b', false],
  ])('inside %s, %s may be taken: %s', (outer, inner, allowed) => {
    expect(mayTakeInside(outer, inner)).toBe(allowed);
  });
});
