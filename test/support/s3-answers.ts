// What S3 and what a proxy in front of it says instead of an object.
import type { Fault } from './faulty-proxy.ts';

/** As S3 says it. */
export function refusal(status: number, code: string, message = 'It says why.'): Fault {
  const body = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`;
  return { kind: 'answer', status, headers: { 'content-type': 'application/xml' }, body };
}

/** Of somebody in between, which parses as the XML of an answer. */
export function foreignPage(status: number): Fault {
  const body = '<html><body>There is nothing here.</body></html>';
  return { kind: 'answer', status, headers: { 'content-type': 'text/html' }, body };
}
