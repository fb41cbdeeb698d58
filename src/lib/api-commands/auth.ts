// Leave to call: the token of this machine, compared in a time that tells nothing of how much of it was right.
import { createHash, timingSafeEqual } from 'node:crypto';
import { errorTexts, tokenHeader } from '../agenda/wire.ts';
import type { Authorize } from '../server/exchange.ts';
import { ApiError } from '../server/route.ts';

/** Throws an ApiError with 401. */
export function createAuthorize(token: string): Authorize {
  const wanted = digest(token);
  return (headers) => {
    const given = headers[tokenHeader];
    // Digests are of one length, whatever was given.
    if (token !== '' && timingSafeEqual(digest(typeof given === 'string' ? given : ''), wanted)) return;
    throw new ApiError(401, errorTexts.token);
  };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
