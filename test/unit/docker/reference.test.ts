import { describe, expect, it } from 'vitest';
import { ecrRegionOf, imagePath, parseImageReference } from '../../../src/lib/docker/reference.ts';
import { InputError } from '../../../src/lib/errors.ts';

const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;

describe('an image reference', () => {
  it.each([
    ['busybox', 'docker.io', 'busybox', undefined, undefined],
    ['busybox:1.36', 'docker.io', 'busybox', '1.36', undefined],
    ['team/app:v1', 'docker.io', 'team/app', 'v1', undefined],
    ['docker.io/library/busybox', 'docker.io', 'docker.io/library/busybox', undefined, undefined],
    ['registry.example/blog/web:1.4.2', 'registry.example', 'registry.example/blog/web', '1.4.2', undefined],
    ['localhost/app', 'localhost', 'localhost/app', undefined, undefined],
    ['localhost:5000/app', 'localhost:5000', 'localhost:5000/app', undefined, undefined],
    ['127.0.0.1:5000/a/b/c:t', '127.0.0.1:5000', '127.0.0.1:5000/a/b/c', 't', undefined],
    ['[::1]:5000/app:t', '[::1]:5000', '[::1]:5000/app', 't', undefined],
    ['Host/app', 'Host', 'Host/app', undefined, undefined],
    [`app@${digest}`, 'docker.io', 'app', undefined, digest],
    [`registry:5000/app:v1@${digest}`, 'registry:5000', 'registry:5000/app', 'v1', digest],
    ['a__b/c-d---e.f', 'docker.io', 'a__b/c-d---e.f', undefined, undefined],
  ])('%s is of registry %s', (text, registry, name, tag, parsedDigest) => {
    expect(parseImageReference(text)).toEqual({ registry, name, tag, digest: parsedDigest });
  });

  it.each([
    [''],
    ['App'],
    ['app:'],
    ['app: v1'],
    ['app@sha256:abc'],
    [`app@${digest}@${digest}`],
    ['http://registry.example/app'],
    ['../../etc'],
    ['a//b'],
    ['a/b/'],
    ['-a'],
    ['app?x=1'],
    ['app\n'],
    [`${'a'.repeat(256)}`],
  ])('%j is refused before anything is asked', (text) => {
    expect(() => parseImageReference(text)).toThrow(InputError);
  });

  it('stands in a path without changing its meaning', () => {
    expect(imagePath(`registry:5000/a/b:v1@${digest}`)).toBe(
      `registry%3A5000/a/b%3Av1%40${digest.replace(':', '%3A')}`,
    );
    expect(imagePath(digest)).toBe(digest.replace(':', '%3A'));
    expect(() => imagePath('../containers/json')).toThrow(InputError);
  });
});

describe('the region of a private registry of AWS', () => {
  it.each([
    ['123456789012.dkr.ecr.eu-west-1.amazonaws.com', 'eu-west-1'],
    ['123456789012.dkr.ecr-fips.us-gov-west-1.amazonaws.com', 'us-gov-west-1'],
    ['123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn', 'cn-north-1'],
    ['123456789012.dkr-ecr.eu-west-1.on.aws', 'eu-west-1'],
    ['public.ecr.aws', undefined],
    ['12345.dkr.ecr.eu-west-1.amazonaws.com', undefined],
    ['123456789012.dkr.ecr.eu-west-1.amazonaws.com.example.com', undefined],
    ['x123456789012.dkr.ecr.eu-west-1.amazonaws.com', undefined],
    ['123456789012.dkr.ecr.eu-west-1.amazonaws.com:5000', undefined],
    ['docker.io', undefined],
  ])('%s is %s', (registry, region) => {
    expect(ecrRegionOf(registry)).toBe(region);
  });
});
