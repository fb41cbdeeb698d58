// Archives as nobody's tar would write them: member by member, with whatever somebody puts there.
import { gzipSync } from 'node:zlib';

export type RawMember = {
  name: string;
  /** As in the header: 0 file, 1 hard link, 2 symlink, 3 device, 5 directory, 6 fifo. */
  type?: '0' | '1' | '2' | '3' | '5' | '6';
  content?: string | Buffer;
  target?: string;
  mode?: number;
  /** Claims to be so large, whatever follows. */
  sizeBytes?: number;
};

export function makeTarGz(members: readonly RawMember[]): Buffer {
  return gzipSync(Buffer.concat([...members.map(renderMember), Buffer.alloc(1024)]));
}

function renderMember({
  name,
  type = '0',
  content = '',
  target = '',
  mode = 0o644,
  ...rest
}: RawMember): Buffer {
  const body = Buffer.from(content);
  const header = Buffer.alloc(512);
  const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, '0')}\0`;
  header.write(name, 0, 100, 'latin1');
  header.write(octal(mode, 8), 100);
  header.write(octal(0, 8), 108);
  header.write(octal(0, 8), 116);
  header.write(octal(rest.sizeBytes ?? body.length, 12), 124);
  header.write(octal(1_700_000_000, 12), 136);
  header.write('        ', 148);
  header.write(type, 156);
  header.write(target, 157, 100, 'latin1');
  header.write('ustar\0', 257);
  header.write('00', 263);
  header.write(
    `${octal(
      header.reduce((sum, byte) => sum + byte, 0),
      7,
    )} `,
    148,
  );
  return Buffer.concat([header, body, Buffer.alloc((512 - (body.length % 512)) % 512)]);
}
