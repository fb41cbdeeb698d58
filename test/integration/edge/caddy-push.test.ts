// When Caddy is given something, and what it keeps: against the real Caddy.
import { describe, expect, it } from 'vitest';
import { fetchConfig, sendConfig } from '../../../src/lib/caddy/admin.ts';
import type { CaddyDocument } from '../../../src/lib/edge/balancer.ts';
import { buildCaddyDocument } from '../../../src/lib/edge/caddy-document.ts';
import { hashConfigText, type PushRequest, pushCaddy } from '../../../src/lib/edge/push.ts';
import type { Backend } from '../../../src/lib/edge/route.ts';
import { isSameDocument } from '../../../src/lib/edge/same-document.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { startAdminProxy } from '../../support/admin-proxy.ts';
import { startBackend } from '../../support/backends.ts';
import { type Caddy, type CaddyOptions, fetchOnceServed, startCaddy } from '../../support/caddy.ts';

const signal = new AbortController().signal;

type Setup = { caddy: Caddy; backend: Backend; document: CaddyDocument };

/** `app.example.com` is to be served; nothing has been sent yet. */
async function setUp(options: CaddyOptions = {}): Promise<Setup> {
  const caddy = await startCaddy(options);
  const backend = await startBackend('one');
  return { caddy, backend, document: documentOf(caddy, { 'app.example.com': [backend] }) };
}

function documentOf({ settings }: Caddy, routes: Record<string, Backend[]>): CaddyDocument {
  const list = Object.entries(routes).map(([domain, backends]) => ({ domain, backends }));
  return buildCaddyDocument(list, { caddy: settings, closeDelay: false });
}

/** As a tick does it. */
async function push(admin: string, document: CaddyDocument, live?: PushRequest['live']) {
  const read = live ?? (await fetchConfig(admin, { signal }).catch(() => undefined));
  return await pushCaddy({ admin, document, live: read, signal, log: silentLog });
}

const served = { status: 200, body: 'one GET /' };

describe('a push to Caddy', () => {
  it('happens once, and gives the hash of what Caddy shows from then on (L44-L46)', async () => {
    const { caddy, document } = await setUp();
    const { admin } = caddy.settings;
    const first = await push(admin, document);
    const { text } = await fetchConfig(admin, { signal });
    expect(first).toEqual({ sent: true, textHash: hashConfigText(text) });
    expect(await push(admin, document)).toEqual({ sent: false, textHash: first.textHash });
    expect(await caddy.changes()).toEqual(['POST /config/']);
    expect(await fetchOnceServed(caddy, 'app.example.com')).toEqual(served);
  });

  it('does not happen for a document in another order (R44)', async () => {
    const { caddy, backend } = await setUp();
    const { admin } = caddy.settings;
    const other = { ...backend, port: backend.port + 1 };
    await push(admin, documentOf(caddy, { 'b.example.com': [backend, other], 'a.example.com': [backend] }));
    const reordered = documentOf(caddy, { 'a.example.com': [backend], 'b.example.com': [other, backend] });
    const { admin: block, apps } = reordered as { admin: unknown; apps: unknown };
    expect((await push(admin, { apps, admin: block })).sent).toBe(false);
    expect(await caddy.changes()).toEqual(['POST /config/']);
  });

  it('is repeated after another writer’s, never over it unseen (R48)', async () => {
    const { caddy, document } = await setUp();
    const { admin } = caddy.settings;
    const stale = await fetchConfig(admin, { signal });
    const rival = documentOf(caddy, {});
    await sendConfig(admin, JSON.stringify(rival), { ifMatch: stale.etag, signal });
    expect(await push(admin, document, stale)).toMatchObject({ sent: true });
    expect(isSameDocument((await fetchConfig(admin, { signal })).text, document)).toBe(true);
    // Refused, then done; the rival's own was the first.
    expect(await caddy.changes()).toEqual(['POST /config/', 'POST /config/', 'POST /config/']);
  });

  it('is not needed where the other writer wanted the same (R48)', async () => {
    const { caddy, document } = await setUp();
    const { admin } = caddy.settings;
    const stale = await fetchConfig(admin, { signal });
    await sendConfig(admin, JSON.stringify(document), { ifMatch: stale.etag, signal });
    expect((await push(admin, document, stale)).sent).toBe(false);
  });

  it('gives up on a writer that is always faster (R48)', async () => {
    const { caddy, document } = await setUp();
    const proxy = await startAdminProxy(caddy.settings.admin);
    let rivals = 0;
    proxy.beforeRequest = async (line) => {
      if (line !== 'POST /config/') return undefined;
      rivals += 1;
      const rival = { ...documentOf(caddy, {}), logging: { logs: { [`rival-${rivals}`]: {} } } };
      await sendConfig(caddy.settings.admin, JSON.stringify(rival), { signal });
      return undefined;
    };
    await expect(push(proxy.admin, document)).rejects.toMatchObject({
      code: 'caddy-contended',
      message: expect.stringContaining('another writer changed it 3 times'),
    });
    expect(rivals).toBe(3);
    expect((await fetchConfig(caddy.settings.admin, { signal })).text).toContain('rival-3');
  });

  it('claims nothing about a configuration that was changed right after it (R48)', async () => {
    const { caddy, document } = await setUp();
    const proxy = await startAdminProxy(caddy.settings.admin);
    const live = await fetchConfig(proxy.admin, { signal });
    proxy.beforeRequest = async (line) => {
      if (line.startsWith('GET')) {
        await sendConfig(caddy.settings.admin, JSON.stringify(documentOf(caddy, {})), { signal });
      }
      return undefined;
    };
    expect(await push(proxy.admin, document, live)).toEqual({ sent: true });
  });

  it.each(['reset', 500] as const)('replaces what cannot be read: %s (L48)', async (answer) => {
    const { caddy, document } = await setUp();
    const proxy = await startAdminProxy(caddy.settings.admin);
    proxy.beforeRequest = (line) => (line.startsWith('GET') ? answer : undefined);
    expect(await push(proxy.admin, document)).toEqual({ sent: true });
    expect(await caddy.changes()).toEqual(['POST /load']);
    expect(await fetchOnceServed(caddy, 'app.example.com')).toEqual(served);
  });

  it('that is refused leaves the last good configuration served (L49)', async () => {
    const { caddy, document } = await setUp();
    const { admin } = caddy.settings;
    const { textHash } = await push(admin, document);
    await fetchOnceServed(caddy, 'app.example.com');
    const { settings } = caddy;
    // As on this version: the word is newer than the program.
    const bad = buildCaddyDocument([], { caddy: settings, closeDelay: false }) as { apps: object };
    const refused = { ...bad, apps: { ...bad.apps, nonsense: {} } };
    await expect(push(admin, refused)).rejects.toMatchObject({ code: 'caddy-refused' });
    expect(await caddy.fetch('app.example.com')).toEqual(served);
    expect(await push(admin, document)).toEqual({ sent: false, textHash });
  });

  it('brings back what a restart with the boot configuration has lost (L47, R46)', async () => {
    const { caddy, document } = await setUp();
    const { admin } = caddy.settings;
    const { textHash } = await push(admin, document);
    // A kill while a certificate is made leaves a lock that the next Caddy waits 10 s for.
    await fetchOnceServed(caddy, 'app.example.com');
    await caddy.kill();
    await caddy.restart();
    expect(isSameDocument((await fetchConfig(admin, { signal })).text, document)).toBe(false);
    expect(await push(admin, document)).toEqual({ sent: true, textHash });
    expect(await fetchOnceServed(caddy, 'app.example.com')).toEqual(served);
  });

  it('is not needed after a restart that resumes', async () => {
    const { caddy, document } = await setUp({ resume: true });
    const { admin } = caddy.settings;
    const { textHash } = await push(admin, document);
    // A kill while a certificate is made leaves a lock that the next Caddy waits 10 s for.
    await fetchOnceServed(caddy, 'app.example.com');
    await caddy.kill();
    await caddy.restart();
    expect(await push(admin, document)).toEqual({ sent: false, textHash });
    expect(await fetchOnceServed(caddy, 'app.example.com')).toEqual(served);
  });
});
