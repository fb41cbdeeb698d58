import { expect, it } from 'vitest';
import { asDirectory, kindOfPlace } from '../../../src/lib/rsync/place.ts';

it.each([
  ['/opt/homelab/events', 'local'],
  ['./events', 'local'],
  ['events', 'local'],
  ['/srv/with:colon/x', 'local'],
  ['./with:colon', 'local'],
  ['control:/opt/homelab', 'ssh'],
  ['deploy@control:/opt/homelab', 'ssh'],
  ['deploy@control:', 'ssh'],
  ['[fd00::1]:/opt/homelab', 'ssh'],
  ['deploy@[fd00::1]:/opt/homelab', 'ssh'],
  ['control::module/x', 'daemon'],
  ['deploy@control::module', 'daemon'],
  ['rsync://control/module', 'daemon'],
  ['RSYNC://control/module', 'daemon'],
])('takes %s for what rsync takes it for: %s', (place, kind) => {
  expect(kindOfPlace(place)).toBe(kind);
});

it('means what is in a directory', () => {
  expect(asDirectory('control:/x')).toBe('control:/x/');
  expect(asDirectory('control:/x/')).toBe('control:/x/');
});
