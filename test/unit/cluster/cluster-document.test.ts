import { describe, expect, it } from 'vitest';
import { describeCluster, replaceTopicArn } from '../../../src/lib/cluster/cluster-document.ts';

const arn = 'arn:aws:sns:eu-central-1:123456789012:launch-pad-prod';
const about = {
  clusterId: 'prod',
  region: 'eu-central-1',
  createdAt: '2026-06-04T03:00:00.000Z',
  createdBy: 'reeve deploy',
};

describe('cluster.json', () => {
  it('has the fields that launch-pad knows, in its order', () => {
    expect(JSON.stringify(describeCluster({ ...about, snsTopicArn: arn }))).toBe(
      `{"clusterId":"prod","defaultEdge":null,"region":"eu-central-1","createdAt":"2026-06-04T03:00:00.000Z","createdBy":"reeve deploy","autoscale":null,"snsTopicArn":"${arn}"}`,
    );
    expect(describeCluster({ ...about, defaultEdge: 'edge-1' })).toMatchObject({
      defaultEdge: 'edge-1',
      snsTopicArn: null,
    });
  });

  it.each([
    [
      'in the middle, in any layout',
      '{ "a" : 1.50,\t"snsTopicArn":null , "z":["snsTopicArn", {"snsTopicArn": 1}] }',
      `{ "a" : 1.50,\t"snsTopicArn":"${arn}" , "z":["snsTopicArn", {"snsTopicArn": 1}] }`,
    ],
    ['over another', '{\r\n"snsTopicArn": "arn:old"}\r\n', `{\r\n"snsTopicArn": "${arn}"}\r\n`],
    [
      'the last of two, which is the one that counts',
      '{"snsTopicArn":1,"snsTopicArn":2}',
      `{"snsTopicArn":1,"snsTopicArn":"${arn}"}`,
    ],
    ['where it is missing', '{\n  "x": "}"\n}\n', `{\n  "x": "}",\n  "snsTopicArn": "${arn}"\n}\n`],
    ['in an empty one', ' {} ', `{\n  "snsTopicArn": "${arn}"\n}\n`],
  ])('takes the topic %s, and keeps the rest byte for byte (L119)', (_, before, after) => {
    expect(replaceTopicArn(before, arn)).toBe(after);
    expect(replaceTopicArn(after, arn)).toBe(after);
    expect(JSON.parse(after)).toMatchObject({ snsTopicArn: arn });
  });

  it.each(['', '{', '[]', 'null', '"x"', '\0\0'])('is not written over where it is %j', (text) => {
    expect(() => replaceTopicArn(text, arn)).toThrow('cannot change cluster.json: it is no');
  });
});
