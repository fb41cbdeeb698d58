// scripts/deploy-service.sh beside another run for the same service: one of the two deploys, and the other says so.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { onTestFinished } from '../../support/after-test.ts';
import { type Checkout, makeCheckout, readLines } from '../../support/checkout.ts';

const web = { image: 'reeve-demo/web:v1' };
const refused = (service: string) => ({
  status: 1,
  stderr: `deploy-service: another deploy of ${service} is under way\n`,
});
const comes = (path: string) => expect.poll(() => existsSync(path), { timeout: 60_000 }).toBe(true);

/** Each `up` of compose, by its words. */
function countStarts(checkout: Checkout): () => number {
  const log = join(checkout.root, 'compose.log');
  checkout.writeProgram('docker-compose', `echo "$@" >>"${log}"; exec "$REAL" "$@"`);
  return () => readLines(log).filter((line) => line.includes(' up ')).length;
}

describe('another run for the same service', () => {
  it('is refused before anything is changed, and done once the first has ended (R37)', async () => {
    const checkout = makeCheckout(['one-by-one']);
    const starts = countStarts(checkout);
    checkout.writeCompose('one-by-one', { web });
    const [begun, go] = [join(checkout.root, 'begun'), join(checkout.root, 'go')];
    checkout.write(
      'checkout/services/one-by-one/healthcheck.sh',
      `touch ${begun}; until [ -e ${go} ]; do sleep 0.1; done`,
    );
    const first = checkout.startDeploy(['one-by-one']);
    await comes(begun);
    const during = checkout.containers('one-by-one');
    expect(await checkout.deploy(['one-by-one'])).toMatchObject(refused('one-by-one'));
    // By another way to the same directory.
    checkout.write('elsewhere/x', '');
    const other = await checkout.deploy([
      '--checkout',
      `${checkout.root}/elsewhere/../checkout`,
      'one-by-one',
    ]);
    expect(other).toMatchObject(refused('one-by-one'));
    expect(checkout.containers('one-by-one')).toStrictEqual(during);
    writeFileSync(go, '');
    expect((await first.ended).status).toBe(0);
    expect(starts()).toBe(1);
    expect((await checkout.deploy(['one-by-one'])).status).toBe(0);
    expect(starts()).toBe(2);
  });

  it('does not wait for one of another service', async () => {
    const checkout = makeCheckout(['apart-a', 'apart-b']);
    for (const service of ['apart-a', 'apart-b']) checkout.writeCompose(service, { web });
    const [begun, go] = [join(checkout.root, 'begun'), join(checkout.root, 'go')];
    checkout.write(
      'checkout/services/apart-a/healthcheck.sh',
      `touch ${begun}; until [ -e ${go} ]; do sleep 0.1; done`,
    );
    const first = checkout.startDeploy(['apart-a']);
    await comes(begun);
    expect((await checkout.deploy(['apart-b'])).status).toBe(0);
    writeFileSync(go, '');
    expect((await first.ended).status).toBe(0);
  });

  it('is refused as long as compose of a run goes on that has been killed', async () => {
    const checkout = makeCheckout(['orphaned']);
    checkout.writeCompose('orphaned', { web });
    const [begun, go, once] = ['begun', 'go', 'once'].map((name) => join(checkout.root, name));
    checkout.writeProgram(
      'docker-compose',
      `case "$*" in *' up '*) [ -e ${once} ] || { touch ${once} ${begun}; until [ -e ${go} ]; do sleep 0.1; done; } ;; esac
exec "$REAL" "$@"`,
    );
    const first = checkout.startDeploy(['orphaned']);
    await comes(begun ?? '');
    first.child.kill('SIGKILL');
    expect(await checkout.deploy(['orphaned'])).toMatchObject(refused('orphaned'));
    writeFileSync(go ?? '', '');
    await first.ended;
    expect((await checkout.deploy(['orphaned'])).status).toBe(0);
  });

  it('is not refused for what healthcheck.sh has left behind (R40)', async () => {
    const checkout = makeCheckout(['with-daemon']);
    checkout.writeCompose('with-daemon', { web });
    const seen = join(checkout.root, 'pid');
    checkout.write(
      'checkout/services/with-daemon/healthcheck.sh',
      `setsid sh -c 'echo $$ >>${seen}; exec sleep 600' </dev/null >/dev/null 2>&1 &\nuntil [ -s ${seen} ]; do sleep 0.1; done`,
    );
    const pids = () => readFileSync(seen, 'utf8').trim().split('\n').map(Number);
    onTestFinished(() => {
      for (const pid of existsSync(seen) ? pids() : [])
        if (existsSync(`/proc/${pid}`)) process.kill(pid, 'SIGKILL');
    });
    expect((await checkout.deploy(['with-daemon'])).status).toBe(0);
    expect(existsSync(`/proc/${pids()[0]}`)).toBe(true);
    expect((await checkout.deploy(['with-daemon'])).status).toBe(0);
  });
});
