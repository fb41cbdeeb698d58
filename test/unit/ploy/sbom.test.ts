import { describe, expect, it } from 'vitest';
import { parseSbom } from '../../../src/lib/ploy/sbom.ts';

describe('parseSbom', () => {
  it('takes SPDX and CycloneDX with nested components, each package once, sorted', () => {
    const nested = [
      { name: 'B', version: ' 1 ', components: [{ name: 'a', version: '2' }] },
      { name: 'b', version: '1' },
    ];
    const wanted = [
      { package: 'a', version: '2' },
      { package: 'b', version: '1' },
    ];
    expect(parseSbom(JSON.stringify({ bomFormat: 'CycloneDX', components: nested }))).toEqual(wanted);
    const packages = [
      { name: 'b', versionInfo: '1' },
      { name: 'A', versionInfo: '2' },
      { name: 'c' },
      7,
      null,
    ];
    expect(parseSbom(JSON.stringify({ spdxVersion: 'SPDX-2.3', packages }))).toEqual(wanted);
  });

  it.each(['', 'no JSON', '[]', '7', 'null', '{}', '{"packages":null}'])('finds nothing in %j', (text) => {
    expect(parseSbom(text)).toEqual([]);
  });

  it('throws where the packages are no list', () => {
    expect(() => parseSbom('{"packages":{}}')).toThrow('cannot read the SBOM: packages is no list');
  });
});
