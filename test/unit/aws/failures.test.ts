import { describe, expect, it } from 'vitest';
import { describeConnection } from '../../../src/lib/aws/connection-failures.ts';
import { toCloudError } from '../../../src/lib/aws/failures.ts';

const asError = (properties: object, message = 'of the test'): Error =>
  Object.assign(new Error(message), properties);

describe('a failure of a cloud service', () => {
  it.each<[string, Error, object]>([
    [
      'by its system code, so that programs can tell it',
      asError({ name: 'Error', code: 'ECONNREFUSED' }, 'connect ECONNREFUSED 127.0.0.1:1'),
      { code: 'ECONNREFUSED', message: 'cannot ask: connect ECONNREFUSED 127.0.0.1:1' },
    ],
    [
      'by its code alone where several addresses were tried',
      asError({ name: 'AggregateError', code: 'ECONNREFUSED' }, ''),
      { code: 'ECONNREFUSED', message: 'cannot ask: ECONNREFUSED' },
    ],
    [
      'that has no code by its name',
      asError({ name: 'TimeoutError' }),
      { code: 'TimeoutError', message: 'cannot ask: of the test' },
    ],
    [
      'that broke off while it was read as the connection’s',
      asError({ code: 'ECONNRESET', $response: { statusCode: 200 } }, 'aborted'),
      { code: 'ECONNRESET', message: 'cannot ask: ECONNRESET: aborted' },
    ],
    [
      'for credentials with where they come from',
      asError({ name: 'CredentialsProviderError' }, 'none'),
      {
        code: 'credentials',
        message: expect.stringMatching(/^cannot ask: none: .*environment.*~\/\.aws.*AWS_PROFILE.*role$/),
      },
    ],
  ])('is told %s', (_, error, told) => {
    expect(toCloudError(error, 'ask')).toMatchObject({ exitCode: 69, ...told });
  });

  it.each([
    [{ 'content-type': 'text/plain' }, 400, ': is the endpoint right?'],
    [{}, 404, ': is the endpoint right?'],
    [{}, 502, ''],
  ])('with %o and %i is somebody else’s where nothing in it could be read', (headers, status, advice) => {
    const error = asError({ $response: { statusCode: status, headers } }, 'secret');
    const told = toCloudError(error, 'ask');
    expect(told).not.toHaveProperty('cause');
    expect(told).toMatchObject({
      ...{ exitCode: 69, code: 'answer' },
      message: `cannot ask: the service answers ${status}, and not as the service that is asked for${advice}`,
    });
  });
});

describe('a connection that comes to nothing', () => {
  const tls = 'https://minio.example:9000';
  const plain = 'http://minio.example:9000';
  it.each<[string, object, string | undefined]>([
    [
      tls,
      { code: 'EPROTO' },
      `${tls} and this machine find no TLS in common (EPROTO): does it speak http://?`,
    ],
    [
      tls,
      { code: 'CERT_HAS_EXPIRED' },
      `the certificate of ${tls} has expired, or the clock of this machine is wrong`,
    ],
    [
      tls,
      { code: 'CERT_NOT_YET_VALID' },
      `the certificate of ${tls} is not valid yet, or the clock of this machine is wrong`,
    ],
    ...[
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'SELF_SIGNED_CERT_IN_CHAIN',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    ].map((code): [string, object, string] => [
      tls,
      { code },
      `the certificate of ${tls} is not trusted (${code}): NODE_EXTRA_CA_CERTS names the file of its authority`,
    ]),
    [
      tls,
      {
        code: 'ERR_TLS_CERT_ALTNAME_INVALID',
        cert: { subjectaltname: 'DNS:a.example, IP Address:10.0.0.1' },
      },
      `the certificate of ${tls} is for a.example, 10.0.0.1 alone`,
    ],
    [
      plain,
      { code: 'ECONNRESET' },
      `${plain} hangs up without an answer (ECONNRESET): does it speak https://?`,
    ],
    [
      plain,
      { code: 'HPE_INVALID_CONSTANT' },
      `${plain} answers with what is no HTTP (HPE_INVALID_CONSTANT): does it speak https://?`,
    ],
    [plain, { code: 'ECONNRESET', syscall: 'read' }, undefined],
    [tls, { code: 'ECONNRESET' }, undefined],
    [tls, { code: 'ECONNREFUSED' }, undefined],
  ])('of %s with %o is told as %s', (origin, properties, told) => {
    expect(describeConnection(asError(properties), origin)).toBe(told);
  });
});
