import { describe, expect, it } from 'vitest';
import { canonicalJson, compareBytewise } from '../../../src/lib/cluster/canonical.ts';
import { configStamp } from '../../../src/lib/cluster/stamp.ts';
import { aService } from '../../support/builders.ts';

describe('the config stamp', () => {
  it('of a service with nothing set is the known text (L178)', () => {
    expect(configStamp(aService())).toBe('{"env":{},"restartAt":null,"secretRefs":[]}');
  });

  it('holds env, restartAt, secrets and volumes in byte order of their names (L178, L180)', () => {
    const service = aService({
      env: { b: '2', B: '1', a_b: '3', ab: '4', '9': 'nine', '10': 'ten' },
      restartAt: '2026-06-04T03:00:00.000Z',
      secretRefs: [
        { name: 'TOKEN', ssm: '/t' },
        { name: 'KEY', ssm: '/k' },
      ],
      volumes: [
        { name: 'logs', path: '/logs' },
        { name: 'data', path: '/data' },
      ],
    });
    expect(configStamp(service)).toBe(
      '{"env":{"10":"ten","9":"nine","B":"1","a_b":"3","ab":"4","b":"2"},' +
        '"restartAt":"2026-06-04T03:00:00.000Z",' +
        '"secretRefs":[{"name":"KEY","ssm":"/k"},{"name":"TOKEN","ssm":"/t"}],' +
        '"volumes":[{"name":"data","path":"/data"},{"name":"logs","path":"/logs"}]}',
    );
  });

  it('puts DB2_HOST before DB_HOST, as bytes do and locales do not (L179, L180, R1)', () => {
    const stamp = configStamp(aService({ env: { DB_HOST: 'a', DB2_HOST: 'b' } }));
    expect(stamp).toBe('{"env":{"DB2_HOST":"b","DB_HOST":"a"},"restartAt":null,"secretRefs":[]}');
  });

  it('is the same for documents that differ only in the order of keys and sets (R1)', () => {
    const one = aService({ env: { A: '1', B: '2' }, volumes: [volume('x'), volume('y')] });
    const other = aService({ env: { B: '2', A: '1' }, volumes: [volume('y'), volume('x')] });
    expect(configStamp(other)).toBe(configStamp(one));
  });

  it('differs when a value inside moves from one name to another (R2)', () => {
    const one = aService({ env: { A: '1', B: '2' } });
    const other = aService({ env: { A: '2', B: '1' } });
    expect(configStamp(other)).not.toBe(configStamp(one));
  });

  it('does not depend on image, resources or the number of replicas (L178)', () => {
    const service = aService({ image: 'other:2', cpu: 1, memory: 64, replicas: 7 });
    expect(configStamp(service)).toBe(configStamp(aService()));
  });
});

describe('canonical JSON', () => {
  it('sorts keys at every level, keeps lists, leaves out what is absent (R1, R2)', () => {
    const value = { z: [{ b: 1, a: undefined }, 'x', null], A: { '\u{1f600}': 1, '\uffee': 2 } };
    expect(canonicalJson(value)).toBe('{"A":{"\uffee":2,"\u{1f600}":1},"z":[{"b":1},"x",null]}');
  });

  it.each([
    ['a', 'b', -1],
    ['b', 'a', 1],
    ['a', 'a', 0],
    ['a', 'ab', -1],
    ['\uffee', '\u{1f600}', -1],
    ['\u{1f600}a', '\u{1f600}b', -1],
    ['\u{1f600}', '\u{1f601}', -1],
  ])('compares %j with %j like their UTF-8 bytes', (left, right, sign) => {
    expect(Math.sign(compareBytewise(left, right))).toBe(sign);
    expect(Math.sign(Buffer.compare(Buffer.from(left), Buffer.from(right)))).toBe(sign);
  });
});

function volume(name: string): { name: string; path: string } {
  return { name, path: `/${name}` };
}
