import { describe, expect, it } from 'vitest';
import { UnexpectedAnswer } from '../../../src/lib/docker/errors.ts';
import {
  parseErrorMessage,
  parseImageIdentity,
  parseImageList,
  parseMinimumVersion,
  parsePullLine,
  parseVolumeList,
  parseWait,
} from '../../../src/lib/docker/parse.ts';

const id = 'e509b6d8e510c1d66ad22e8b0974423a6eef1488702d1b796ce6c383c13e2d00';
const imageId = 'sha256:311bdf2a699d5223d9eab2ddfb3978ccad282aee0e2777d068d71fd92eb3ee20';

describe('images and volumes', () => {
  it('lists an image under tags and digests, and a nameless one under none', () => {
    const images = parseImageList([
      { Id: imageId, RepoTags: ['a:1', 'b:2'], RepoDigests: ['a@sha256:1'], Size: 5, Created: 1_780_000_000 },
      { Id: id, RepoTags: ['<none>:<none>'], RepoDigests: ['<none>@<none>'], Size: 6, Created: 0 },
      { Id: 'x', RepoTags: null },
    ]);
    expect(images).toEqual([
      {
        id: imageId,
        references: ['a:1', 'b:2', 'a@sha256:1'],
        sizeBytes: 5,
        createdAt: new Date('2026-05-28T20:26:40Z'),
      },
      { id, references: [], sizeBytes: 6, createdAt: new Date(0) },
      { id: 'x', references: [], sizeBytes: 0, createdAt: new Date(0) },
    ]);
    expect(() => parseImageList({})).toThrow(UnexpectedAnswer);
  });

  it('gives the digests of an image, none for one that was built here', () => {
    expect(parseImageIdentity({ Id: imageId, RepoDigests: ['a@sha256:1'] })).toEqual({
      id: imageId,
      digests: ['a@sha256:1'],
    });
    expect(parseImageIdentity({ Id: imageId, RepoDigests: null })).toEqual({ id: imageId, digests: [] });
  });

  it('lists volumes, with or without labels and dates', () => {
    const raw = {
      Volumes: [
        { Name: 'a', Labels: { x: 'y' }, CreatedAt: '2026-05-28T20:26:40Z', Mountpoint: '/v/a/_data' },
        { Name: 'b', Labels: null },
      ],
      Warnings: null,
    };
    expect(parseVolumeList(raw)).toEqual([
      {
        name: 'a',
        labels: { x: 'y' },
        createdAt: new Date('2026-05-28T20:26:40Z'),
        mountpoint: '/v/a/_data',
      },
      { name: 'b', labels: {}, createdAt: undefined, mountpoint: '' },
    ]);
    expect(parseVolumeList({ Volumes: null })).toEqual([]);
    expect(() => parseVolumeList({})).toThrow(UnexpectedAnswer);
  });
});

describe('the lines of a pull', () => {
  it('tell how far a layer is', () => {
    const line = {
      status: 'Downloading',
      id: '4f4fb700ef54',
      progressDetail: { current: 1, total: 2 },
      progress: '[>]',
    };
    expect(parsePullLine(line)).toEqual({
      progress: { layer: '4f4fb700ef54', status: 'Downloading', currentBytes: 1, totalBytes: 2 },
    });
    expect(parsePullLine({ status: 'Pulling from a', id: 'latest' })).toEqual({
      progress: { layer: 'latest', status: 'Pulling from a' },
    });
  });

  it.each([
    [{ error: 'boom', errorDetail: { message: 'boom' } }],
    [{ errorDetail: { message: 'boom' } }],
    [{ error: 'boom' }],
  ])('tell an error in any of its shapes: %j', (line) => {
    expect(parsePullLine(line)).toEqual({ error: 'boom' });
  });
});

describe('small answers', () => {
  it('give the exit code of a wait, or the reason there is none', () => {
    expect(parseWait({ StatusCode: 3, Error: null })).toEqual({ exitCode: 3, error: '' });
    expect(parseWait({ StatusCode: 0, Error: { Message: 'gone' } })).toEqual({ exitCode: 0, error: 'gone' });
    expect(() => parseWait({})).toThrow(UnexpectedAnswer);
  });

  it('give the message of an error in the shapes of both engines', () => {
    expect(parseErrorMessage({ message: 'no such container' })).toBe('no such container');
    expect(parseErrorMessage({ cause: 'x', message: 'no container', response: 404 })).toBe('no container');
    expect(parseErrorMessage(undefined)).toBeUndefined();
  });

  it('give the oldest version, where the engine says it', () => {
    expect(parseMinimumVersion({ ApiVersion: '1.60', MinAPIVersion: '1.55' })).toBe('1.55');
    expect(parseMinimumVersion({ ApiVersion: '1.60' })).toBeUndefined();
  });
});
