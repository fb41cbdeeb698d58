import { describe, expect, it } from 'vitest';
import { readLogName } from '../../../src/lib/agenda/instances.ts';
import {
  parseLogsQuery,
  parseMetricsQuery,
  parseProbeQuery,
  parseProxyRequest,
} from '../../../src/lib/agenda/queries.ts';
import { InputError } from '../../../src/lib/errors.ts';

const query = (text: string): URLSearchParams => new URLSearchParams(text);

describe('the query of a metrics relay', () => {
  it('has a port, and by default http and /metrics', () => {
    expect(parseMetricsQuery(query('port=9464'))).toEqual({ port: 9464, scheme: 'http', target: '/metrics' });
    expect(parseMetricsQuery(query('port=1&scheme=https&path=/a/../b%3Fc=d'))).toEqual({
      ...{ port: 1, scheme: 'https', target: '/a/../b?c=d' },
    });
    expect(parseMetricsQuery(query('port=65535&scheme=&path='))).toMatchObject({ target: '/metrics' });
  });

  it.each([
    ['/a b', '/a%20b'],
    ['/ä€😀', '/%C3%A4%E2%82%AC%F0%9F%98%80'],
    ['/a%2Fb', '/a%2Fb'],
    ['/a#b?c', '/a'],
    ['//other.example/a', '//other.example/a'],
  ])('has path %s as %s in its request line', (path, target) => {
    expect(parseMetricsQuery(query(`port=1&path=${encodeURIComponent(path)}`)).target).toBe(target);
  });

  it.each(['', 'port=', 'port=0', 'port=-1', 'port=65536', 'port=1e3', 'port=0x50', 'port= 80', 'port=80.0'])(
    'is refused for the port of %j',
    (text) => {
      expect(() => parseMetricsQuery(query(text))).toThrow(InputError);
    },
  );

  it.each([
    ['path=metrics', 'path must start with /'],
    ['path=http://other.example/', 'path must start with /'],
    ['path=/a%0d%0aX: y', 'path must have no control characters'],
    ['path=/a%00', 'path must have no control characters'],
    ['scheme=file', 'scheme must be http or https'],
    ['scheme=HTTP', 'scheme must be http or https'],
  ])('is refused with %s', (text, message) => {
    expect(() => parseMetricsQuery(query(`port=80&${text}`))).toThrow(message);
  });
});

describe('the query of a probe', () => {
  const common = { port: 80, scheme: 'http', target: '/', method: 'GET', timeoutMs: 5_000 };

  it.each([
    ['', common],
    ['path=/healthz&method=head', { ...common, target: '/healthz', method: 'HEAD' }],
    ['timeout_ms=250', { ...common, timeoutMs: 250 }],
    ['timeout_ms=30001', { ...common, timeoutMs: 30_000 }],
    ['timeout_ms=99999999999999999999', common],
    ['timeout_ms=0', common],
    ['timeout_ms=-5', common],
    ['timeout_ms=soon', common],
  ])('is understood with %j', (text, wanted) => {
    expect(parseProbeQuery(query(`port=80&${text}`))).toEqual(wanted);
  });

  it.each(['method=CONNECT', 'method=TRACE', 'method=GE T', 'method=GET%0d%0a', 'path=x', 'scheme=ws'])(
    'is refused with %s',
    (text) => {
      expect(() => parseProbeQuery(query(`port=80&${text}`))).toThrow(InputError);
    },
  );
});

describe('the query of logs', () => {
  it.each([
    ['dir=/run/a', { dir: '/run/a', tail: 200 }],
    ['dir=/a&tail=1&service=worker', { dir: '/a', tail: 1, service: 'worker' }],
    ['dir=/a&tail=5001&service=', { dir: '/a', tail: 5_000 }],
    ['dir=/a&tail=0', { dir: '/a', tail: 200 }],
    ['dir=/a&tail=-1', { dir: '/a', tail: 200 }],
    ['dir=/a&tail=all', { dir: '/a', tail: 200 }],
  ])('is understood with %j', (text, wanted) => {
    expect(parseLogsQuery(query(text))).toEqual(wanted);
  });

  it.each([
    ['', 'dir is required'],
    ['dir=', 'dir is required'],
    ['dir=logs', 'dir must be an absolute path'],
    ['dir=/a%00b', 'dir must be an absolute path'],
  ])('is refused with %j', (text, message) => {
    expect(() => parseLogsQuery(query(text))).toThrow(message);
  });
});

describe('the name of a log file', () => {
  it.each([
    ['app__default.log', ''],
    ['app__default__api.log', 'api'],
    ['app__default__api__2.log', 'api__2'],
    ['app__default2.log', undefined],
    ['app__defaul.log', undefined],
    ['my-app__default.log', undefined],
    ['app__default.log.1', undefined],
    ['app__default__api.txt', undefined],
    ['app__default', undefined],
    ['.log', undefined],
  ])('%s tells of the service %j', (name, service) => {
    expect(readLogName(name, 'app', 'default')).toBe(service);
  });
});

describe('the body of a registration', () => {
  it('is a port', () => {
    expect(parseProxyRequest({ port: 8080, weight: 1 })).toBe(8080);
  });

  it.each([0, -1, 65_536, 1.5, '8080', null, undefined, [80], {}])('is refused for port %j', (port) => {
    expect(() => parseProxyRequest({ port })).toThrow('port must be a whole number from 1 to 65535');
  });

  it.each([null, [], 'port', 80])('is refused as %j', (raw) => {
    expect(() => parseProxyRequest(raw)).toThrow(InputError);
  });
});
