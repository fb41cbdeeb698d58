import { describe, expect, test } from 'vitest';
import { parseClaimPayload, parseSpec } from '../../../src/lib/ploy/parse.ts';
import { type Execution, planExecution } from '../../../src/lib/ploy/plan.ts';
import type { Stack } from '../../../src/lib/ploy/stack.ts';
import { buildPayload } from '../../support/ploy/jobs.ts';

const sha = 'b'.repeat(40);
const serverUrl = 'https://ploy.invalid';
const java = { language: 'java', tool: 'maven', release: '17' };

type About = {
  spec?: unknown;
  claim?: object;
  nodeEnv?: Record<string, string>;
  knownStack?: Stack;
};

function plan({ spec, claim = {}, nodeEnv = {}, knownStack }: About): Execution {
  const payload = parseClaimPayload({ ...buildPayload({}, sha), job_image: '', ...claim });
  return planExecution({ payload, spec: parseSpec(spec), serverUrl, nodeEnv, knownStack });
}

function planContainer(about: About): Extract<Execution, { kind: 'container' }> {
  const execution = plan(about);
  if (execution.kind !== 'container') throw new Error(`it is ${execution.kind}`);
  return execution;
}

const step = (more: object = {}): object => ({ image: 'app:1', ...more });

describe('a mig', () => {
  test('of one step runs it with everything that it asks for: P49', () => {
    const spec = {
      envs: { A: 'top', B: 'top' },
      bundle_map: { abcdef0: 'B0' },
      steps: [
        step({
          ...{ command: 'make', envs: { B: 'step' }, options: { mount_docker_socket: true } },
          ...{ in: ['abcdef0:/in/x'], home: ['abcdef0:.m2:ro'], tmp: ['abcdef0:/tmp/t'] },
        }),
      ],
    };
    expect(plan({ spec, claim: { detected_stack: java } })).toEqual({
      kind: 'container',
      image: 'app:1',
      command: ['/bin/sh', '-c', 'make'],
      env: {
        ...{ A: 'top', B: 'step', PLOY_SERVER_URL: serverUrl },
        ...{ PLOY_STACK_LANGUAGE: 'java', PLOY_STACK_TOOL: 'maven', PLOY_STACK_RELEASE: '17' },
      },
      workingDir: '/workspace',
      stepIndex: 0,
      files: [
        { section: 'in', hash: 'abcdef0', bundleId: 'B0', dst: '/in/x', readOnly: true },
        { section: 'home', hash: 'abcdef0', bundleId: 'B0', dst: '/root/.m2', readOnly: true },
        { section: 'tmp', hash: 'abcdef0', bundleId: 'B0', dst: '/tmp/t', readOnly: false },
      ],
      needsTmp: true,
      mountDockerSocket: true,
      stack: java,
    });
  });

  test('of several steps runs the one that the claim says, or its name', () => {
    const spec = {
      envs: { A: 'top' },
      steps: [step({ envs: { A: '0' } }), step({ image: 'app:2', envs: { B: '1' } })],
    };
    expect(planContainer({ spec, claim: { mig_context: { step_index: 1 } } })).toMatchObject({
      ...{ image: 'app:2', stepIndex: 1, needsTmp: false, mountDockerSocket: false },
      env: { A: 'top', B: '1', PLOY_SERVER_URL: serverUrl },
    });
    expect(planContainer({ spec, claim: { mig_context: null, job_name: 'mig-1' } }).stepIndex).toBe(1);
    expect(
      planContainer({ spec, claim: { mig_context: { step_index: 0 }, job_name: 'mig-1' } }).env['A'],
    ).toBe('0');
    expect(() => plan({ spec, claim: { mig_context: { step_index: 2 } } })).toThrow('cannot find step 2');
    expect(() => plan({ spec, claim: { mig_context: null, job_name: 'other' } })).toThrow(
      'cannot find step of job "other"',
    );
  });

  test('of one step has no need of a number', () => {
    expect(
      planContainer({ spec: { steps: [step()] }, claim: { mig_context: { step_index: 7 } } }).stepIndex,
    ).toBe(0);
  });

  test('has the image of the claim before that of its step, and none without either', () => {
    const spec = { steps: [step()] };
    expect(planContainer({ spec, claim: { job_image: 'claimed:1' } }).image).toBe('claimed:1');
    expect(planContainer({ claim: { job_image: 'claimed:1', env: { A: '1' } } })).toMatchObject({
      ...{ image: 'claimed:1', command: [], files: [], env: { A: '1', PLOY_SERVER_URL: serverUrl } },
    });
    expect(() => plan({})).toThrow('neither the claim nor a spec names one');
  });

  test.each([
    [{ language: 'Java', tool: 'Maven' }, 'maven:1'],
    [{ language: 'java', tool: 'gradle' }, 'gradle:1'],
    [{ language: 'java', tool: 'java' }, 'java:1'],
    [{ language: 'java', tool: 'ant' }, 'any:1'],
    [{ language: 'go', tool: 'maven' }, 'any:1'],
    [undefined, 'any:1'],
  ])('of stack %j has the image that is named for it', (stack, image) => {
    const byStack = { 'java-maven': 'maven:1', 'java-gradle': 'gradle:1', java: 'java:1', default: 'any:1' };
    const spec = { steps: [step({ image: byStack })] };
    expect(planContainer({ spec, claim: { detected_stack: stack } }).image).toBe(image);
  });

  test('knows the stack from an earlier gate, but believes the claim', () => {
    const spec = { steps: [step({ image: { 'java-maven': 'maven:1' } })] };
    expect(planContainer({ spec, knownStack: java }).image).toBe('maven:1');
    expect(() => plan({ spec, knownStack: java, claim: { detected_stack: { language: 'go' } } })).toThrow(
      'none is named for stack "unknown" and none is the default',
    );
  });

  test('has names in its image filled in, of its stack and of the node', () => {
    const image = `$\{REGISTRY}/$NAME:$\{stack.tool}-$\{stack.release}`;
    const spec = { steps: [step({ image })] };
    const nodeEnv = { REGISTRY: 'r:5000', NAME: 'app' };
    expect(planContainer({ spec, nodeEnv, claim: { detected_stack: java } }).image).toBe(
      'r:5000/app:maven-17',
    );
    expect(() => plan({ spec, nodeEnv })).toThrow(/\$\{stack.tool\}, \$\{stack.release\} has no value/);
    expect(() => plan({ spec: { steps: [step({ image: '$constructor' })] } })).toThrow(
      '$constructor has no value',
    );
    expect(() => plan({ spec: { steps: [step({ image: `$\{stack.os}` })] } })).toThrow('has no value');
    expect(() => plan({ claim: { job_image: '$A' }, nodeEnv: { A: ' ' } })).toThrow('it is empty');
  });

  test('has no file of a bundle that the spec does not have, and no home that is no path', () => {
    const files = { home: ['abcdef0:x'] };
    expect(() => plan({ spec: { steps: [step(files)] } })).toThrow('cannot find bundle abcdef0');
    const at = (home: string) => ({
      bundle_map: { abcdef0: 'B' },
      steps: [step({ ...files, envs: { HOME: home } })],
    });
    expect(planContainer({ spec: at('/home/me/') }).files[0]?.dst).toBe('/home/me/x');
    expect(planContainer({ spec: at('') }).files[0]?.dst).toBe('/root/x');
    for (const home of ['me', '/home/../etc'])
      expect(() => plan({ spec: at(home) })).toThrow('is no absolute path');
  });

  test('cannot say which server the node is of', () => {
    const spec = { steps: [step({ envs: { PLOY_SERVER_URL: 'http://other' } })] };
    expect(planContainer({ spec }).env['PLOY_SERVER_URL']).toBe(serverUrl);
  });
});

describe('a gate', () => {
  const images = [
    { stack: { language: 'java' }, image: 'any:1' },
    { stack: { language: 'java', release: '17' }, image: 'release:1' },
    { stack: { language: 'java', tool: 'maven' }, image: 'maven:1' },
    { stack: { language: 'java', tool: 'maven', release: '17' }, image: 'exact:1' },
    { stack: { language: 'go' }, image: 'go:1' },
  ];
  const spec = (gate: object = {}, ...steps: object[]): object => ({
    envs: { A: 'top' },
    steps: steps.length === 0 ? [step({ envs: { B: 'step' }, command: 'x', in: ['abcdef0:/in/x'] })] : steps,
    build_gate: { images, ...gate },
  });
  const pre = { job_type: 'pre_gate', job_name: 'pre-gate', mig_context: null };
  const post = { ...pre, job_type: 'post_gate', job_name: 'post-gate' };

  test('runs its image as it is, with the repository in its environment', () => {
    expect(plan({ spec: spec(), claim: { ...pre, detected_stack: java } })).toEqual({
      ...{
        kind: 'container',
        image: 'exact:1',
        command: [],
        workingDir: '/workspace',
        stepIndex: 0,
        stack: java,
      },
      ...{ files: [], needsTmp: false, mountDockerSocket: false },
      env: {
        ...{ A: 'top', B: 'step', PLOY_SERVER_URL: serverUrl, PLOY_BASE_REF: 'main', PLOY_COMMIT_SHA: sha },
        ...{ PLOY_REPO_URL: 'https://example.invalid/repo.git' },
        ...{ PLOY_STACK_LANGUAGE: 'java', PLOY_STACK_TOOL: 'maven', PLOY_STACK_RELEASE: '17' },
      },
    });
  });

  test('of several steps has the variables of none of them, and says nothing that is not known', () => {
    const two = spec({}, step({ envs: { B: '0' } }), step({ envs: { B: '1' } }));
    const claim = { ...post, detected_stack: java, base_ref: '', commit_sha: '' };
    const { env, stepIndex } = planContainer({ spec: two, claim });
    expect(stepIndex).toBe(1);
    expect(Object.keys(env)).not.toEqual(expect.arrayContaining(['B']));
    expect(env).not.toHaveProperty('PLOY_COMMIT_SHA');
  });

  test.each([
    [{ language: 'java' }, 'any:1'],
    [{ language: 'java', tool: 'ant' }, 'any:1'],
    [{ language: 'java', tool: 'ant', release: '17' }, 'release:1'],
    [{ language: 'java', tool: 'maven', release: '11' }, 'maven:1'],
    [{ language: 'go' }, 'go:1'],
  ])('of stack %j has the image of the rule that says most', (stack, image) => {
    expect(planContainer({ spec: spec(), claim: { ...pre, detected_stack: stack } }).image).toBe(image);
  });

  test('without an image for its stack is refused', () => {
    const claim = { ...pre, detected_stack: { language: 'rust' } };
    expect(() => plan({ spec: spec(), claim })).toThrow('none is named for stack rust/*/*');
    expect(() => plan({ spec: spec(), claim: pre })).toThrow('none is named for an unknown stack');
    expect(planContainer({ spec: spec(), claim: { ...claim, job_image: 'gate:1' } }).image).toBe('gate:1');
    expect(planContainer({ claim: { ...post, job_image: 'gate:1' } }).stepIndex).toBe(0);
  });

  test('that is disabled has passed', () => {
    expect(plan({ spec: spec({ disabled: true }), claim: pre })).toEqual({
      kind: 'passed',
      reason: 'the build gate is disabled',
    });
  });

  test('takes the stack that it is forced to, that was detected, or that it falls back to', () => {
    const go = { language: 'go', tool: 'go', release: '1' };
    const withMode = (mode: string, claim: object = {}): Execution =>
      plan({ spec: spec({ pre: { stack: { mode, ...go } } }), claim: { ...pre, ...claim } });
    expect(withMode('forced', { detected_stack: java })).toMatchObject({ image: 'go:1', stack: go });
    expect(withMode('fallback', { detected_stack: java })).toMatchObject({ image: 'exact:1', stack: java });
    expect(withMode('fallback')).toMatchObject({ image: 'go:1', stack: go });
    expect(withMode('strict', { detected_stack: go })).toMatchObject({ image: 'go:1' });
    expect(withMode('strict', { detected_stack: java })).toEqual({
      kind: 'failed',
      reason: 'the stack is java/maven/17, expected is go/go/1',
    });
  });

  test('looks before the first step and after the last at what they expect', () => {
    const expecting = (language: string) => ({ enabled: true, expect: { language } });
    const steps = [
      step({ stack: { inbound: expecting('java') } }),
      step({ stack: { outbound: expecting('go') } }),
    ];
    const claim = { detected_stack: java };
    expect(plan({ spec: spec({}, ...steps), claim: { ...pre, ...claim } }).kind).toBe('container');
    expect(plan({ spec: spec({}, ...steps), claim: { ...post, ...claim } }).kind).toBe('failed');
    expect(plan({ spec: spec({}, ...steps), claim: post })).toMatchObject({ image: 'go:1' });
  });
});
