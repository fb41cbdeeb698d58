import { describe, expect, it } from 'vitest';
import { createConfigHome } from '../../support/config-home.ts';

const node = 'node: web-1, pull: /srv/in/, push: "deploy@control:/srv/out/", checkout: /srv/checkout';
const placeRule = 'must be an absolute path, HOST:PATH or rsync://HOST/MODULE';
const scriptRule = 'must be a path in the checkout, which does not begin with "/" and has no ".."';

describe('section actions', () => {
  it('gives a deploy 600 s (D39)', async () => {
    const home = await createConfigHome(`actions: { ${node} }\n`);
    expect((await home.load()).actions).toEqual({
      node: 'web-1',
      pull: '/srv/in/',
      push: 'deploy@control:/srv/out/',
      checkout: '/srv/checkout',
      config: '/opt/homelab/config',
      timeoutMs: 600_000,
      verifyTimeoutMs: 120_000,
      user: 'root',
    });
  });

  it('says where the machine’s own files are, and how long what was started may take to run well', async () => {
    const home = await createConfigHome(`actions: { ${node}, config: /srv/config, verify_timeout: 5m }\n`);
    expect((await home.load()).actions).toMatchObject({ config: '/srv/config', verifyTimeoutMs: 300_000 });
  });

  it.each([
    ['verify_timeout: 10m', '1:116', 'must be less than the 600 seconds that the whole deploy has, not 10m'],
    ['verify_timeout: 0s', '1:116', 'must be 1s at least, not 0s'],
  ])('refuses %s (D39)', async (setting, place, problem) => {
    const home = await createConfigHome(`actions: { ${node}, ${setting} }\n`);
    expect(await home.problems()).toEqual([`reeve.yaml:${place}: actions.verify_timeout ${problem}`]);
  });

  it('has no rule for the default where a deploy has less than that', async () => {
    const home = await createConfigHome(`actions: { ${node}, timeout: 1m }\n`);
    expect(await home.problems()).toEqual([]);
  });

  it.each([
    ['1', 1000],
    ['770', 770_000],
  ])('gives a deploy DEPLOY_TIMEOUT_SECS=%s (D38)', async (seconds, timeoutMs) => {
    const home = await createConfigHome(`actions: { ${node}, timeout: 5m }\n`);
    expect((await home.load({ DEPLOY_TIMEOUT_SECS: seconds })).actions?.timeoutMs).toBe(timeoutMs);
  });

  it.each([
    ['771', 'must be at most 770 seconds, as the control side gives up after 900, not "771"'],
    ['900', 'must be at most 770 seconds, as the control side gives up after 900, not "900"'],
    ['0', 'must be more than 0 seconds, not "0"'],
    ['ten', 'must be more than 0 seconds, not "ten"'],
    ['-5', 'must be more than 0 seconds, not "-5"'],
  ])('refuses DEPLOY_TIMEOUT_SECS=%s (D38, D40)', async (seconds, problem) => {
    const home = await createConfigHome(`actions: { ${node} }\n`);
    expect(await home.problems({ DEPLOY_TIMEOUT_SECS: seconds })).toEqual([`DEPLOY_TIMEOUT_SECS ${problem}`]);
  });

  it.each<[string, number, string[]]>([
    ['1000', 870, []],
    [
      '1000',
      871,
      ['DEPLOY_TIMEOUT_SECS must be at most 870 seconds, as the control side gives up after 1000, not "871"'],
    ],
    // Whatever the control side waits: longer than its unit no deploy may be.
    ['86400', 899, []],
    [
      '86400',
      900,
      [
        'DEPLOY_TIMEOUT_SECS must be at most 899 seconds, as the control side gives up after 86400, not "900"',
      ],
    ],
    ['600', 470, []],
    [
      '130',
      1,
      ['DEPLOY_TIMEOUT_SECS has no time at all: the control side gives up after 130 seconds, not "1"'],
    ],
    ['0', 5, ['REDEPLOY_TIMEOUT_SECS must be 1 to 86400, not "0"']],
    ['86401', 5, ['REDEPLOY_TIMEOUT_SECS must be 1 to 86400, not "86401"']],
    ['1e3', 5, ['REDEPLOY_TIMEOUT_SECS must be 1 to 86400, not "1e3"']],
  ])(
    'takes REDEPLOY_TIMEOUT_SECS=%s, which a deploy of %s s has to end before (D40)',
    async (executor, deploy, problems) => {
      const home = await createConfigHome(`actions: { ${node} }\n`);
      const overrides = { REDEPLOY_TIMEOUT_SECS: executor, DEPLOY_TIMEOUT_SECS: String(deploy) };
      expect(await home.problems(overrides)).toEqual(problems);
      if (problems.length > 0) return;
      expect((await home.load(overrides)).actions?.resultTimeoutMs).toBe(Number(executor) * 1000);
    },
  );

  it.each([
    ['13m', '900', 'at most 770 seconds, as the control side gives up after 900, not 13m'],
    ['15m', '86400', 'at most 899 seconds, as the control side gives up after 86400, not 15m'],
    [undefined, '729', 'at most 599 seconds, as the control side gives up after 729, not 10m'],
  ])(
    'refuses a timeout of %s where the control side gives up after %s s (D40, D41)',
    async (timeout, given, problem) => {
      const home = await createConfigHome(
        `actions: { ${node}${timeout === undefined ? '' : `, timeout: ${timeout}`} }\n`,
      );
      const problems = await home.problems({ REDEPLOY_TIMEOUT_SECS: given });
      expect(problems).toEqual([expect.stringMatching(/^reeve.yaml:1:\d+: /)]);
      expect(problems[0]).toContain(`actions.timeout must be ${problem}`);
    },
  );

  it('lets a control host without a node wait as long as it likes (D40)', async () => {
    const home = await createConfigHome('actions: { root: /opt/homelab/actions }\n');
    expect(await home.problems({ REDEPLOY_TIMEOUT_SECS: '60' })).toEqual([]);
  });

  it('reads the timeout from the environment file of the deploy-runner (D38)', async () => {
    const home = await createConfigHome(`actions: { file: runner.env, ${node} }\n`);
    await home.write('runner.env', '# deploy-runner\nexport DEPLOY_TIMEOUT_SECS="120"\nNODE_NAME=web-1\n');
    const { actions, warnings } = await home.load();
    expect([actions?.timeoutMs, warnings]).toEqual([
      120_000,
      [`${home.root}/runner.env: not used: NODE_NAME`],
    ]);
  });

  it.each([
    ['DEPLOY_TIMEOUT_SECS=soon', '1:1: DEPLOY_TIMEOUT_SECS must be a whole number of seconds, not "soon"'],
    [
      'DEPLOY_TIMEOUT_SECS=900',
      '1:1: actions.timeout must be at most 770 seconds, as the control side gives up after 900, not 900s',
    ],
    ['deploy', '1:1: this is not NAME=VALUE'],
  ])('refuses an environment file with %s (D40)', async (line, problem) => {
    const home = await createConfigHome(`actions: { file: runner.env, ${node} }\n`);
    await home.write('runner.env', `${line}\n`);
    expect(await home.problems()).toContain(`runner.env:${problem}`);
  });

  it.each(['web_1', 'Pi', 'vps.example', 'a'.repeat(54)])(
    'refuses node %s, for which no action could have an id (D29)',
    async (name) => {
      const home = await createConfigHome(`actions: { ${node.replace('web-1', name)} }\n`);
      expect(await home.problems()).toEqual([
        `reeve.yaml:1:18: actions.node must fit into an id, redeploy-NODE-SERVICE: lower-case letters, digits and "-", 53 characters at most, not "${name}"`,
      ]);
    },
  );

  it('takes a node of 53 characters', async () => {
    const home = await createConfigHome(`actions: { ${node.replace('web-1', 'a'.repeat(53))} }\n`);
    expect(await home.problems()).toEqual([]);
  });

  it('lists what a node lacks', async () => {
    const home = await createConfigHome('actions: { node: web-1, checkout: /c }\n');
    expect(await home.problems()).toEqual([
      'reeve.yaml:1:1: actions.pull is missing',
      'reeve.yaml:1:1: actions.push is missing',
    ]);
  });

  it.each([
    '/out',
    '/out/{date}/',
    'control:',
    'control:out',
    'c:/d',
    'u@[fe80::1]:/out',
    'rsync://c/m',
    'c::m',
  ])('takes a place of %s (D4)', async (place) => {
    const home = await createConfigHome(`actions: { ${node.replace('/srv/in/', `"${place}"`)} }\n`);
    expect(await home.problems()).toEqual([]);
    expect((await home.load()).actions?.pull).toBe(place);
  });

  it('lets a machine have the control side alone', async () => {
    const home = await createConfigHome('actions: { root: /opt/homelab/actions }\n');
    expect((await home.load()).actions).toMatchObject({ node: '', root: '/opt/homelab/actions' });
  });

  it.each([
    ['checkout: checkout', '1:22: actions.checkout must be an absolute path, not "checkout"'],
    ['root: actions', '1:18: actions.root must be an absolute path, not "actions"'],
    ['pull: "-e evil"', `1:18: actions.pull ${placeRule}, not "-e evil"`],
    ['pull: "-e evil:/x"', `1:18: actions.pull ${placeRule}, not "-e evil:/x"`],
    ['pull: in', `1:18: actions.pull ${placeRule}, not "in"`],
    ['pull: ./a:b', `1:18: actions.pull ${placeRule}, not "./a:b"`],
    ['push: root@127.0.0.1', `1:18: actions.push ${placeRule}, not "root@127.0.0.1"`],
    ['push: "{date}/out"', `1:18: actions.push ${placeRule}, not "{date}/out"`],
    ['push: ":/out"', `1:18: actions.push ${placeRule}, not ":/out"`],
    ['push: "[::1]/out"', `1:18: actions.push ${placeRule}, not "[::1]/out"`],
    ['script: ../x.sh', `1:20: actions.script ${scriptRule}, not "../x.sh"`],
    ['script: a/../../x.sh', `1:20: actions.script ${scriptRule}, not "a/../../x.sh"`],
    ['script: /bin/true', `1:20: actions.script ${scriptRule}, not "/bin/true"`],
    ['node: ../x', '1:18: actions.node must be the name of a node, not "../x"'],
    ['config: config', '1:20: actions.config must be an absolute path, not "config"'],
    ['user: "a b"', '1:18: actions.user must be the name of a user, not "a b"'],
  ])('refuses %s', async (setting, problem) => {
    const home = await createConfigHome(`actions: { ${setting} }\n`);
    expect(await home.problems()).toEqual([`reeve.yaml:${problem}`]);
  });
});
