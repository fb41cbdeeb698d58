// What a service is given arrives as it was written: variables, secrets, volumes.
import { describe, expect, it } from 'vitest';
import type { DesiredService } from '../../../src/lib/cluster/wire.ts';
import { engineSocket } from '../../support/engine.ts';
import { askDocker, makeNode, type TestNode } from '../../support/node.ts';
import { aWorkerDeploy } from '../../support/services.ts';

const socket = engineSocket();

/** Bytes that shells, env files, YAML and JSON are known to spoil. */
const nastyValues: Record<string, string> = {
  EMPTY: '',
  BLANKS: '  leading and trailing\t ',
  NEWLINES: 'one\ntwo\r\nthree\n',
  QUOTES: `'single' "double" \`back\``,
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the point is that nobody expands it
  DOLLARS: '$HOME ${HOME} $(id) $$ %PATH%',
  BACKSLASHES: '\\ \\n \\\\ \\x41 C:\\temp',
  EQUALS: 'a=b=c==',
  HASH: 'before # after',
  UNICODE: 'grüße 日本語 🦉 \u200b\u00a0e\u0301',
  CONTROL: '\u0001\u0007\u001b[31m\u007f',
  YAMLISH: '- a: [b, {c: d}]\n...\n---\n&x *x !!str yes',
  NUMBER: '007',
  BOOLEAN: 'no',
  LONG: 'x'.repeat(100_000),
  DOCKER_HOST: 'tcp://127.0.0.1:1',
  LD_PRELOAD: '/nowhere/lib.so',
};

/** The environment of a container's first process, byte for byte from the kernel. */
async function environmentOf(id: string): Promise<Record<string, string>> {
  const text = await askDocker(socket, ['exec', id, 'cat', '/proc/1/environ']);
  return Object.fromEntries(
    text
      .split('\0')
      .filter((entry) => entry !== '')
      .map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
  );
}

async function onlyContainer(node: TestNode): Promise<string> {
  const [container, ...others] = await node.containers();
  expect(others).toEqual([]);
  return String(container?.id);
}

describe.concurrent('variables', () => {
  it('arrive byte for byte, and a secret whose name the plain ones have gives way (L139, L140, R50)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'nasty', onTestFinished });
    node.writeSecret('nasty/worker/API_KEY', 's3cret=$x "quoted"\nsecond line\n\n');
    node.writeSecret('nasty/worker/NUMBER', 'from the secret');
    await node.deploy([aWorkerDeploy({ env: nastyValues, secrets: ['API_KEY'] })]);
    // deploy refuses one name twice; launch-pad's CLI lets the plain one win.
    const [desired] = node.desired().services as [DesiredService];
    const number = { name: 'NUMBER', ssm: '/launch-pad/default/nasty/worker/NUMBER' };
    node.writeDesired([{ ...desired, secretRefs: [...desired.secretRefs, number] }]);
    const end = await node.reeve('reconcile', '--debug');
    expect(end.status).toBe(0);
    const environment = await environmentOf(await onlyContainer(node));
    // Exactly one newline at the end belongs to the file rather than to the secret.
    const expected = { ...nastyValues, API_KEY: 's3cret=$x "quoted"\nsecond line\n' };
    expect(Object.fromEntries(Object.keys(expected).map((name) => [name, environment[name]]))).toEqual(
      expected,
    );
    expect(`${end.stdout}${end.stderr}`).not.toContain('s3cret');
  });

  it('that cannot arrive are refused by name before anything starts, and nothing is said of their values (R50)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'nul', onTestFinished });
    await node.deploy([aWorkerDeploy()]);
    await node.reeve('reconcile');
    const before = await node.containers();
    const [desired] = node.desired().services as [DesiredService];
    node.writeDesired([{ ...desired, env: { TOKEN: 'hush\0hush' } }]);
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().troubles.map(({ key }) => key)]).toEqual([1, ['nul/worker']]);
    expect(end.json().troubles[0]?.message).toMatch(/TOKEN.* NUL/);
    expect(`${end.stdout}${end.stderr}`).not.toContain('hush');
    expect(await node.containers()).toEqual(before);
  });

  it('from a secret that is missing are that service’s error, and its container stays', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'missing', onTestFinished });
    await node.deploy([aWorkerDeploy()]);
    await node.reeve('reconcile');
    const before = await node.containers();
    await node.deploy([aWorkerDeploy({ secrets: ['API_KEY'] }), aWorkerDeploy({ service: 'other' })]);
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().troubles]).toEqual([
      1,
      [
        {
          key: 'missing/worker',
          message: `cannot resolve secrets: API_KEY is missing: there is no ${node.root}/etc/secrets/missing/worker/API_KEY`,
          retryAt: expect.stringMatching(/^\d{4}-.*Z$/),
        },
      ],
    ]);
    expect((await node.containers()).filter(({ name }) => name.includes('worker'))).toEqual(before);
    expect(await node.containers()).toHaveLength(2);
  });
});

describe.concurrent('a volume', () => {
  it('has its name without an index, and outlives rollout, removal and return (L141-L144)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'kept', onTestFinished });
    const volumes = [{ name: 'data', path: '/data' }];
    await node.deploy([aWorkerDeploy({ volumes })]);
    await node.reeve('reconcile');
    await askDocker(socket, ['exec', await onlyContainer(node), 'sh', '-c', 'echo kept > /data/file']);
    await node.deploy([aWorkerDeploy({ volumes, env: { CHANGED: 'yes' } })]);
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect(await askDocker(socket, ['exec', await onlyContainer(node), 'cat', '/data/file'])).toBe('kept\n');
    await node.reeve('deploy', '--remove', 'kept', '--yes');
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect(await node.containers()).toEqual([]);
    expect(await askDocker(socket, ['volume', 'ls', '-q', '--filter', 'name=launchpadvol_kept'])).toBe(
      'launchpadvol_kept_worker_data\n',
    );
    await node.deploy([aWorkerDeploy({ volumes })]);
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect(await askDocker(socket, ['exec', await onlyContainer(node), 'cat', '/data/file'])).toBe('kept\n');
  });
});
