import { describe, expect, it } from 'vitest';
import { services } from '../../../src/lib/systemd/units.ts';
import { one, parseUnit } from '../../support/unit-files.ts';

const confined = services.filter(({ isConfined }) => isConfined !== false).map(({ unit }) => unit);

describe('the sandbox of a unit', () => {
  it.each(confined)('%s opens no socket of a network that it does not have (O49)', (name) => {
    const unit = parseUnit(name);
    const isWithout = one(unit, 'Service.PrivateNetwork') === 'yes';
    const families = isWithout ? 'AF_UNIX' : 'AF_UNIX AF_INET AF_INET6 AF_NETLINK';
    expect(one(unit, 'Service.RestrictAddressFamilies')).toBe(families);
  });

  it.each(services.filter(({ engine }) => !engine).map(({ unit }) => unit))(
    '%s claims no need of an engine that it does not see',
    (name) => {
      expect(parseUnit(name).text).not.toMatch(/(for|uses|needs) the (container )?engine|Docker socket/);
    },
  );

  it('gives away files only where it may, and says so', () => {
    for (const name of confined) {
      const unit = parseUnit(name);
      const mayGive = one(unit, 'Service.CapabilityBoundingSet')?.includes('CAP_CHOWN') === true;
      expect([name, unit.text.includes('Giving a file the owner that it has needs no privilege')]).toEqual([
        name,
        !mayGive,
      ]);
    }
  });
});
