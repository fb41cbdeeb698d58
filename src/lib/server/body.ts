// Bodies of requests: each up to its own limit, and all that are held at one time up to theirs, however many callers there are.
import type { IncomingMessage } from 'node:http';
import { ApiError } from './route.ts';

/** What one request has of the room. */
export type TakenRoom = {
  /** False where there is not as much left. */
  take(bytes: number): boolean;
  giveBack(): void;
};

export type BodyRoom = { open(): TakenRoom };

export function createBodyRoom(bytes: number): BodyRoom {
  let left = bytes;
  return {
    open: () => {
      let taken = 0;
      return {
        take: (more) => {
          if (more > left) return false;
          left -= more;
          taken += more;
          return true;
        },
        giveBack: () => {
          left += taken;
          taken = 0;
        },
      };
    },
  };
}

/** Throws ApiError: 413 beyond the limit of one, 503 where too many others are held, 400 for one that does not come to its end. */
export async function readBody(req: IncomingMessage, most: number, room: TakenRoom): Promise<Buffer> {
  const tooLarge = new ApiError(413, `the body is larger than ${most} bytes`);
  if (Number(req.headers['content-length'] ?? 0) > most) throw tooLarge;
  const chunks: Buffer[] = [];
  let size = 0;
  return await new Promise((resolve, reject) => {
    const stop = (error: ApiError): void => {
      req.removeAllListeners('data');
      req.pause();
      reject(error);
    };
    req.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > most) return stop(tooLarge);
      if (!room.take(chunk.length)) return stop(tooMany());
      chunks.push(chunk);
    });
    req.once('end', () => resolve(Buffer.concat(chunks)));
    req.once('close', () => stop(new ApiError(400, 'the body has no end')));
    req.once('error', () => stop(new ApiError(400, 'the body has no end')));
  });
}

function tooMany(): ApiError {
  return new ApiError(503, 'too many requests with large bodies at once', { 'retry-after': '1' });
}
