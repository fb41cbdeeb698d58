// SNS when it throttles, refuses a clock or fails inside: tried again or not as it should be, one line each.
import { describe, expect, it } from 'vitest';
import type { Fault } from '../../support/faulty-proxy.ts';
import {
  type Notified,
  refusedBySns,
  refusedBySqs,
  startNotified,
  warningsOf,
} from '../../support/notified.ts';

const queue = 'launch-pad-default-web-1';
const told =
  'warning: nodes may find the change at their next tick only: cannot publish to topic launch-pad-default: ';

/** The first so many messages fail. */
async function deployWith(fault: Fault, times: number): Promise<{ notified: Notified; warnings: string[] }> {
  const notified = await startNotified(['web-1']);
  let left = times;
  notified.proxy.fault = ({ action }) => {
    if (action !== 'Publish' || left === 0) return undefined;
    left -= 1;
    return fault;
  };
  const end = await notified.deploy(['web-1']);
  expect(end.status).toBe(0);
  return { notified, warnings: warningsOf(end) };
}

const internal = refusedBySns(500, 'InternalError');

describe('a message to the topic (L125)', () => {
  it.each<[string, Fault]>([
    ['throttles', refusedBySns(400, 'Throttling', 'Rate exceeded')],
    ['throttles by 429', refusedBySns(429, 'Throttled', 'Rate exceeded')],
    ['has an error of its own', internal],
    ['is not served', { kind: 'answer', status: 503, body: 'busy' }],
    ['resets the connection', { kind: 'reset' }],
  ])('is sent again where SNS %s', async (_, fault) => {
    const { notified, warnings } = await deployWith(fault, 2);
    expect([warnings, notified.asked()['Publish']]).toEqual([[], 3]);
    expect(await notified.queues.receive(queue)).toHaveLength(1);
  });

  it.each<[string, Fault, RegExp]>([
    ['throttles', refusedBySns(400, 'Throttling', 'Rate exceeded'), /^400 Throttling: Rate exceeded$/],
    [
      'throttles by 429',
      refusedBySns(429, 'Throttled', 'Rate exceeded'),
      /^429 Throttled\w*: Rate exceeded$/,
    ],
    ['has errors', internal, /^500 InternalError\w*: of the test$/],
    ['resets', { kind: 'reset' }, /ECONNRESET/],
  ])('is given up after three tries where SNS %s each time', async (_, fault, cause) => {
    const { notified, warnings } = await deployWith(fault, 9);
    expect(notified.asked()['Publish']).toBe(3);
    expect(warnings.map((line) => line.startsWith(told))).toEqual([true]);
    expect(warnings[0]?.slice(told.length)).toMatch(cause);
  });

  it.each<[string, Fault, RegExp]>([
    ['lacks the right', refusedBySns(403, 'AuthorizationError'), /^403 AuthorizationError\w*: of the test$/],
    ['has a token that is old', refusedBySns(403, 'ExpiredToken'), /^403 ExpiredToken\w*: of the test$/],
    ['finds no topic', refusedBySns(404, 'NotFound'), /^404 NotFound\w*: of the test$/],
    [
      'is told that it is wrong',
      refusedBySns(400, 'InvalidParameter'),
      /^400 InvalidParameter\w*: of the test$/,
    ],
  ])('is sent once by who %s', async (_, fault, cause) => {
    const { notified, warnings } = await deployWith(fault, 9);
    expect(notified.asked()['Publish']).toBe(1);
    expect(warnings.map((line) => line.startsWith(told))).toEqual([true]);
    expect(warnings[0]?.slice(told.length)).toMatch(cause);
  });

  it.each([
    ['RequestExpired', 400, 'Request has expired.'],
    [
      'SignatureDoesNotMatch',
      403,
      'Signature expired: 20260604T030000Z is now earlier than 20260604T040000Z',
    ],
    [
      'InvalidSignature',
      403,
      'Signature not yet current: 20260604T050000Z is still later than 20260604T040000Z',
    ],
  ])('over a clock that is wrong says that it is the clock (%s)', async (code, status, message) => {
    const { warnings } = await deployWith(refusedBySns(status, code, message), 9);
    expect(warnings).toEqual([
      expect.stringMatching(
        `^${told}${status} ${code}\\w*: ${message}; the clock of this machine seems to be wrong$`,
      ),
    ]);
  });

  it('over a clock that is wrong is sent again with that of the service', async () => {
    const notified = await startNotified(['web-1']);
    const aheadMs = 3_600_000;
    notified.proxy.answerHeaders = { date: new Date(Date.now() + aheadMs).toUTCString() };
    let refusals = 0;
    notified.proxy.fault = ({ headers }) => {
      const stamp = String(headers['x-amz-date']).replace(/^(....)(..)(..T..)(..)(..)Z$/, '$1-$2-$3:$4:$5Z');
      if (Math.abs(Date.now() + aheadMs - Date.parse(stamp)) < 900_000) return undefined;
      refusals += 1;
      const message = `Signature expired: ${stamp} is now earlier than that`;
      return headers['x-amz-target'] === undefined
        ? refusedBySns(403, 'SignatureDoesNotMatch', message)
        : refusedBySqs(403, 'InvalidSignatureException', message);
    };
    const end = await notified.deploy(['web-1']);
    expect([end.status, warningsOf(end)]).toEqual([0, []]);
    expect(refusals).toBeGreaterThan(0);
    expect(await notified.queues.receive(queue)).toHaveLength(1);
  });
});
