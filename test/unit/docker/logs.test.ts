import { describe, expect, it } from 'vitest';
import { createPartReader } from '../../../src/lib/docker/logs.ts';
import { parseLayerBytes, parseUsage } from '../../../src/lib/docker/parse-usage.ts';
import { buildContainerBody } from '../../../src/lib/docker/spec.ts';

function frame(stream: number, text: string): Buffer {
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([header, Buffer.from(text)]);
}

describe('a log that is followed', () => {
  it.each([1, 3, 8, 9, 1000])('is taken apart in pieces of %i bytes as well', async (size) => {
    const bytes = Buffer.concat([frame(1, 'out\n'), frame(2, 'err\n'), frame(1, ''), frame(1, 'more\n')]);
    const texts = { stdout: '', stderr: '' };
    const push = createPartReader(({ stream, bytes: part }) => {
      texts[stream] += Buffer.from(part).toString();
    });
    for (let at = 0; at < bytes.length; at += size) await push(bytes.subarray(at, at + size));
    expect(texts).toEqual({ stdout: 'out\nmore\n', stderr: 'err\n' });
  });

  it('takes no more while its reader is busy', async () => {
    const seen: string[] = [];
    let release = (): void => {};
    const push = createPartReader(async ({ bytes }) => {
      seen.push(Buffer.from(bytes).toString());
      await new Promise<void>((resolve) => {
        release = resolve;
      });
    });
    const pushed = push(Buffer.concat([frame(1, 'a'), frame(1, 'b')]));
    expect(seen).toEqual(['a']);
    release();
    await Promise.resolve().then(() => {});
    await new Promise(setImmediate);
    expect(seen).toEqual(['a', 'b']);
    release();
    await pushed;
  });
});

describe('what a container has used', () => {
  it.each([
    [{ cpu_stats: { cpu_usage: { total_usage: 5 } }, memory_stats: { usage: 3, max_usage: 7 } }, [5, 7]],
    [{ memory_stats: { usage: 3 } }, [0, 3]],
    [undefined, [0, 0]],
  ])('is read from %j', (stats, [cpuNs, memoryBytes]) => {
    expect(parseUsage(stats)).toEqual({ cpuNs, memoryBytes });
  });

  it.each([
    [{ SizeRw: 9 }, 9],
    [{}, 0],
    [null, 0],
  ])('of the disk is read from %j', (sized, layerBytes) => {
    expect(parseLayerBytes(sized)).toBe(layerBytes);
  });
});

it('a container whose log is kept whole has its directories bound, and no limit that it could reach', () => {
  const body = buildContainerBody({
    ...{
      name: 'job',
      image: 'a:1',
      env: {},
      labels: {},
      restart: 'no',
      ports: [],
      volumes: [],
      logs: 'whole',
    },
    ...{ workingDir: '/workspace', networkMode: 'host', storageSize: '10G', entrypoint: ['/bin/sh'] },
    binds: [{ source: '/a', target: '/b', readOnly: true }],
  });
  expect(body).toMatchObject({
    WorkingDir: '/workspace',
    Entrypoint: ['/bin/sh'],
    HostConfig: {
      NetworkMode: 'host',
      StorageOpt: { size: '10G' },
      Mounts: [{ Type: 'bind', Source: '/a', Target: '/b', ReadOnly: true }],
      LogConfig: { Type: 'json-file', Config: { 'max-size': '1000p' } },
    },
  });
});
