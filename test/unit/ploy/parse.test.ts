import { describe, expect, test } from 'vitest';
import { InputError } from '../../../src/lib/errors.ts';
import { findClaimIds, parseClaimPayload, parseRunStart, parseSpec } from '../../../src/lib/ploy/parse.ts';
import { buildPayload } from '../../support/ploy/jobs.ts';

const sha = 'a'.repeat(40);
const claim = (more: object = {}): Record<string, unknown> => ({ ...buildPayload({}, sha), ...more });
const step = (more: object = {}): object => ({ image: 'app:1', ...more });
const spec = (...steps: object[]): object => ({ steps });

describe('a claim', () => {
  test('has all fields of the wire, and unknown ones are let through: P48', () => {
    const raw = claim({ node_id: 'node-1', name: 'a', next_id: 'Job2', priority: 5 });
    expect(parseClaimPayload(raw)).toEqual(raw);
  });

  test('needs no more than run, job, kind and repository', () => {
    const least = { id: 'R', job_id: 'J', job_type: 'mig', repo_url: 'file:///r' };
    const empty = {
      repo_id: '',
      job_name: '',
      job_image: '',
      next_id: null,
      status: '',
      node_id: '',
      base_ref: '',
    };
    expect(parseClaimPayload(least)).toEqual({ ...least, ...empty });
    expect(parseClaimPayload({ ...least, commit_sha: '', repo_sha_in: null, next_id: '' })).toEqual({
      ...least,
      ...empty,
    });
  });

  test('has its stack and contexts trimmed, and a release that is a number as text', () => {
    const parsed = parseClaimPayload(
      claim({
        detected_stack: { language: ' java ', tool: 'maven', release: 17 },
        gate_context: { cycle_name: ' pre ' },
      }),
    );
    expect(parsed.detected_stack).toEqual({ language: 'java', tool: 'maven', release: '17' });
    expect(parsed.gate_context).toEqual({ cycle_name: 'pre' });
    expect(parseClaimPayload(claim({ detected_stack: { language: '' } })).detected_stack).toBeUndefined();
  });

  test.each([
    ['nothing', undefined, 'it'],
    ['a list', [], 'it'],
    ['no run', claim({ id: undefined }), 'id is missing'],
    ['a run that climbs', claim({ id: '../../etc' }), 'id is no id'],
    ['a job that is an option', claim({ job_id: '-rf' }), 'job_id is no id'],
    ['a job that ends a text early', claim({ job_id: 'a\0b' }), 'job_id is no id'],
    ['a number for a job', claim({ job_id: 7 }), 'job_id is wrong'],
    ['an unknown kind', claim({ job_type: 'deploy' }), 'job_type is wrong'],
    ['no repository', claim({ repo_url: ' ' }), 'repo_url is empty'],
    ['a lone surrogate', claim({ repo_url: 'x\ud800' }), 'repo_url has characters'],
    ['a short commit', claim({ commit_sha: 'abc' }), 'commit_sha is not 40 hex digits'],
    ['an attempt beyond all integers', claim({ attempt: 1e300 }), 'attempt is wrong'],
    [
      'a step before the first',
      claim({ mig_context: { step_index: -1 } }),
      'mig_context.step_index is wrong',
    ],
    ['half a step', claim({ mig_context: { step_index: 0.5 } }), 'mig_context.step_index is wrong'],
    ['an image of another type', claim({ job_image: ['x'] }), 'job_image is wrong'],
    ['an endless id', claim({ job_id: 'J'.repeat(1000) }), 'job_id is no id'],
  ])('with %s is refused, and the field is named', (_, raw, message) => {
    expect(() => parseClaimPayload(raw)).toThrow(InputError);
    expect(() => parseClaimPayload(raw)).toThrow(`cannot use claim: ${message}`);
  });

  test('that does not parse tells its ids where it has them', () => {
    expect(findClaimIds(claim({ id: 'R1', job_id: 'J1', job_type: 'x' }))).toEqual({
      runId: 'R1',
      jobId: 'J1',
    });
    for (const raw of [undefined, {}, claim({ job_id: '../x' })]) expect(findClaimIds(raw)).toBeUndefined();
  });
});

describe('a start request', () => {
  const start = { run_id: 'R1', job_id: 'J1', job_type: 'mig', repo_url: 'https://example.invalid/r' };

  test('stands for a claim: P28', () => {
    const raw = { ...start, job_image: 'app:1', env: { A: '1' }, server_url: 'http://other', next_id: null };
    const parsed = parseRunStart(raw);
    expect(parsed).toMatchObject({ id: 'R1', job_id: 'J1', status: 'Running', env: { A: '1' } });
    expect(parseClaimPayload(parsed)).toEqual(parsed);
  });

  test.each(['run_id', 'job_id', 'job_type', 'repo_url'])('without %s is refused: P32', (name) => {
    for (const value of [undefined, null, '']) {
      expect(() => parseRunStart({ ...start, [name]: value })).toThrow(
        new InputError(`cannot use start request: ${name} is required`),
      );
    }
  });

  test('with a kind that is none, a list, or a run that is a path is refused: P32', () => {
    expect(() => parseRunStart({ ...start, job_type: 'x' })).toThrow(
      'cannot use start request: job_type is wrong',
    );
    expect(() => parseRunStart({ ...start, run_id: '../x' })).toThrow(
      'cannot use start request: run_id is no id',
    );
    for (const raw of [[], null, 'x']) expect(() => parseRunStart(raw)).toThrow('it is no object');
    expect(() => parseRunStart({ ...start, env: { 'A=B': '' } })).toThrow('env has a name');
  });
});

describe('a spec', () => {
  test('becomes typed steps: P49', () => {
    const parsed = parseSpec({
      apiVersion: 'v1',
      ...{ envs: { A: '1' }, bundle_map: { abcdef0: 'B1' }, future: { key: 1 } },
      steps: [
        step({
          ...{ command: ' make ', envs: { B: '2' }, options: { mount_docker_socket: true, other: 1 } },
          ...{ in: ['abcdef0:/in/a/./b'], out: ['abcdef0:/out/x/'], home: ['abcdef0:.m2/s.xml:ro'] },
          ...{ tmp: ['abcdef0:/tmp/t'], stack: { outbound: { enabled: true, expect: { language: 'go' } } } },
        }),
        step({ image: { ' default ': ' app:2 ' }, command: ['a', 'b c'], stack: null }),
      ],
      build_gate: {
        pre: { stack: { mode: 'strict', language: 'go' } },
        post: { stack: { mode: 'forced', language: 'java', tool: 'maven', release: 17 } },
        images: [{ stack: { language: 'java', release: 17.5 }, image: ' gate:1 ' }],
      },
    });
    const [first, second] = parsed.steps;
    expect(first).toMatchObject({
      image: 'app:1',
      command: ['/bin/sh', '-c', 'make'],
      mountDockerSocket: true,
    });
    expect(first?.files).toEqual([
      { section: 'in', hash: 'abcdef0', dst: '/in/a/b', readOnly: true },
      { section: 'out', hash: 'abcdef0', dst: '/out/x', readOnly: false },
      { section: 'home', hash: 'abcdef0', dst: '.m2/s.xml', readOnly: true },
      { section: 'tmp', hash: 'abcdef0', dst: '/tmp/t', readOnly: false },
    ]);
    expect(first?.outbound).toEqual({ language: 'go', tool: '', release: '' });
    expect(second).toMatchObject({
      image: new Map([['default', 'app:2']]),
      command: ['a', 'b c'],
      files: [],
    });
    expect(parsed.gate).toEqual({
      isDisabled: false,
      pre: { mode: 'strict', stack: { language: 'go', tool: '', release: '' } },
      post: { mode: 'forced', stack: { language: 'java', tool: 'maven', release: '17' } },
      images: [{ stack: { language: 'java', tool: '', release: '17.5' }, image: 'gate:1' }],
    });
    expect([parsed.envs, parsed.bundleIds]).toEqual([new Map([['A', '1']]), new Map([['abcdef0', 'B1']])]);
  });

  test.each([undefined, null])('that is %s has no steps', (raw) => {
    expect(parseSpec(raw).steps).toEqual([]);
  });

  test('with a blank command leaves the image its own', () => {
    expect(
      parseSpec(spec(step({ command: ' ' }), step({ command: [] }), step())).steps.map((one) => one.command),
    ).toEqual([[], [], []]);
  });

  test('with names that objects have of themselves changes no object', () => {
    const raw: unknown = JSON.parse(
      '{"steps":[{"image":"a","envs":{"__proto__":"p","constructor":"c"}}],"__proto__":{"x":1},"bundle_map":{"__proto__":"b"}}',
    );
    const { steps, bundleIds } = parseSpec(raw);
    expect([...(steps[0]?.envs ?? [])]).toEqual([
      ['__proto__', 'p'],
      ['constructor', 'c'],
    ]);
    expect([...bundleIds]).toEqual([['__proto__', 'b']]);
    expect(({} as { x?: number }).x).toBeUndefined();
  });

  test('of 10,000 steps is parsed in a moment', () => {
    const many = Array.from({ length: 10_000 }, () => step({ envs: { A: '1' }, in: ['abcdef0:/in/a'] }));
    const beganAt = performance.now();
    expect(parseSpec({ steps: many }).steps).toHaveLength(10_000);
    expect(performance.now() - beganAt).toBeLessThan(5000);
  });

  const phase = (expect_: object | undefined, enabled = true): object => ({ enabled, expect: expect_ });
  const gate = (pre: object): object => ({ ...spec(step()), build_gate: { pre: { stack: pre } } });
  const images = (...rules: object[]): object => ({ ...spec(step()), build_gate: { images: rules } });

  test.each([
    ['a text', 'x', 'it '],
    ['no steps', {}, 'steps is missing'],
    ['an empty list of steps', spec(), 'steps is required'],
    ['no image', spec({}), 'steps[0].image'],
    ['a blank image', spec(step({ image: ' ' })), 'steps[0].image is required'],
    ['no image for any stack', spec(step({ image: {} })), 'steps[0].image is required'],
    ['a command that is an object', spec(step({ command: {} })), 'steps[0].command is wrong'],
    ['a NUL in its command', spec(step({ command: ['a\0'] })), 'steps[0].command'],
    ['a number in its environment', spec(step({ envs: { A: 1 } })), 'steps[0].envs "A" is no text'],
    [
      'a surrogate in its environment',
      spec(step({ envs: { A: '\udc00' } })),
      'steps[0].envs "A" has characters',
    ],
    ['a list for an environment', spec(step({ envs: [] })), 'steps[0].envs is no object'],
    ['a variable without a name', spec(step({ envs: { '': 'x' } })), 'steps[0].envs has a name'],
    ['a socket that is a text', spec(step({ options: { mount_docker_socket: 'yes' } })), 'steps[0].options'],
    ['files that are no list', spec(step({ in: 'x' })), 'steps[0].in is wrong'],
    [
      'files that climb',
      spec(step({ in: ['abcdef0:/in/../etc'] })),
      'steps[0].in in[0]: its destination has ".."',
    ],
    [
      'an expectation of nothing',
      spec(step({ stack: { inbound: phase(undefined) } })),
      'steps[0].stack.inbound is enabled',
    ],
    [
      'an expectation that is off',
      spec(step({ stack: { inbound: phase({ tool: 'x' }, false) } })),
      'steps[0].stack.inbound expects',
    ],
    ['a stack without a mode', gate({ language: 'go' }), 'build_gate.pre.stack has a stack'],
    ['a mode without a stack', gate({ mode: 'strict' }), 'build_gate.pre.stack has a mode'],
    ['half a forced stack', gate({ mode: 'forced', language: 'go' }), 'build_gate.pre.stack needs'],
    [
      'a stack of another type',
      gate({ mode: 'strict', language: 1 }),
      'build_gate.pre.stack has a stack of another type',
    ],
    ['a gate image without a stack', images({ stack: {}, image: 'g' }), 'build_gate.images[0].stack needs'],
    [
      'a gate image without an image',
      images({ stack: { language: 'go' }, image: ' ' }),
      'build_gate.images[0].image is',
    ],
    [
      'two gate images of one stack',
      images({ stack: { language: 'go' }, image: 'a' }, { stack: { language: 'go' }, image: 'b' }),
      'build_gate.images[1] is for go/*/*',
    ],
    [
      'steps that do not fit',
      spec(
        step({ stack: { outbound: phase({ language: 'java' }) } }),
        step({ stack: { inbound: phase({ language: 'go' }) } }),
      ),
      'steps[1].stack.inbound is go/*/*, steps[0] leaves java/*/*',
    ],
  ])('with %s is refused, and the place is named: P49', (_, raw, message) => {
    expect(() => parseSpec(raw)).toThrow(InputError);
    expect(() => parseSpec(raw)).toThrow(`cannot use spec: ${message}`);
  });

  test('whose steps fit is taken', () => {
    const java = phase({ language: 'java', tool: 'maven' });
    const fit = spec(step({ stack: { outbound: java } }), step({ stack: { inbound: java } }), step());
    expect(parseSpec(fit).steps).toHaveLength(3);
  });
});
