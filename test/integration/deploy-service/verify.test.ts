// How scripts/deploy-service.sh looks at what it has started: whatever the clock does, and whatever the engine answers once.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Checkout, makeCheckout } from '../../support/checkout.ts';

const web = { image: 'reeve-demo/web:v1' };
const sick = {
  ...web,
  healthcheck: { test: ['CMD', '/bin/false'], interval: '1s', timeout: '2s', retries: 1 },
};

/** A clock that goes so many seconds further each time that it is asked. */
function writeClock(checkout: Checkout, stepSeconds: number): void {
  const count = join(checkout.root, 'asked');
  writeFileSync(count, '0');
  checkout.writeProgram(
    'date',
    `asked=$(($(cat ${count}) + 1)); echo $asked >${count}; echo $((1800000000 + asked * ${stepSeconds}))`,
  );
}

describe('the time that a service has to run well', () => {
  it('is not over because the clock is set forward', async () => {
    const checkout = makeCheckout(['forward']);
    checkout.writeCompose('forward', { web });
    writeClock(checkout, 3_600);
    expect(await checkout.deploy(['forward'])).toMatchObject({ status: 0 });
  });

  it('is over although the clock is set back', async () => {
    const checkout = makeCheckout(['backward']);
    checkout.writeCompose('backward', { web: sick });
    writeClock(checkout, -3_600);
    const end = checkout.startDeploy(['backward'], { DEPLOY_VERIFY_SECS: '3' }, ['timeout', '100']);
    expect(await end.ended).toMatchObject({
      status: 4,
      stderr: expect.stringContaining('does not run well after 3 seconds'),
    });
  });
});

describe('a container', () => {
  // Where sh is bash, only the answer for the last one would count.
  it.each(['first', 'second'])('that could not be asked for (%s) is not taken for well', async (service) => {
    const checkout = makeCheckout(['unasked']);
    checkout.writeCompose('unasked', { first: web, second: web });
    checkout.writeProgram(
      'docker',
      `case "$*" in 'ps '*compose.service=${service}*) exit 1 ;; esac; exec "$REAL" "$@"`,
    );
    const env = { DEPLOY_VERIFY_SECS: '6' };
    const end = await checkout.startDeploy(['unasked'], env, ['bash', '--posix']).ended;
    expect(end).toMatchObject({ status: 4, stderr: expect.stringContaining('the engine does not answer') });
  });

  it('that an engine does not answer for is not waited for without an end', async () => {
    const checkout = makeCheckout(['hanging']);
    checkout.writeCompose('hanging', { web });
    checkout.writeProgram('docker', `case "$*" in 'ps '*) exec sleep 600 ;; esac; exec "$REAL" "$@"`);
    const end = checkout.startDeploy(['hanging'], { DEPLOY_VERIFY_SECS: '3' }, ['timeout', '100']);
    expect(await end.ended).toMatchObject({
      status: 4,
      stderr: expect.stringContaining('the engine does not answer'),
    });
  });

  it('that is seen between a crash and its restart has another look', async () => {
    const checkout = makeCheckout(['between']);
    checkout.writeCompose('between', { web: { ...web, restart: 'always' } });
    const once = join(checkout.root, 'once');
    checkout.writeProgram(
      'docker',
      `case "$*" in 'inspect '*) [ -e ${once} ] || { "$REAL" "$@" | sed 's/ running 0 / exited 1 /' | tee ${once}; exit; } ;; esac
exec "$REAL" "$@"`,
    );
    expect((await checkout.deploy(['between'])).status).toBe(0);
    expect(existsSync(once) && readFileSync(once, 'utf8')).toMatch(/ exited 1 /);
  });
});

describe('healthcheck.sh', () => {
  it('that does not end, whoever asks it to, has what is left of the time', async () => {
    const checkout = makeCheckout(['stubborn']);
    checkout.writeCompose('stubborn', { web });
    const asked = join(checkout.root, 'asked');
    const script = `trap '' TERM; date +%s >>${asked}; while :; do sleep 1; done\n`;
    checkout.write('checkout/services/stubborn/healthcheck.sh', script);
    const end = await checkout.deploy(['stubborn'], { DEPLOY_VERIFY_SECS: '6' });
    const [first = 0] = readFileSync(asked, 'utf8').trim().split('\n').map(Number);
    expect(end).toMatchObject({
      status: 4,
      stderr: expect.stringContaining('healthcheck.sh ended with 137'),
    });
    // Twice five seconds are usual; of thirty it would have been 35 at least.
    expect(Date.now() / 1_000 - first).toBeLessThan(30);
  });
});
