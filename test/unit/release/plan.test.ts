import { describe, expect, it } from 'vitest';
import { type DesiredService, serviceKey } from '../../../src/lib/cluster/wire.ts';
import { findDomainConflicts } from '../../../src/lib/release/domains.ts';
import { type NodePlan, planDeploy, planRestart, type Scope } from '../../../src/lib/release/plan.ts';
import {
  emptyDesired,
  parseRawDesired,
  type RawDesired,
  renderRawDesired,
} from '../../../src/lib/release/raw-document.ts';
import { aDesired, aService, aWebService } from '../../support/builders.ts';

const blog: Scope = { projects: new Set(['blog']) };
const updatedAt = '2026-06-05T00:00:00.000Z';

/** Written by another program: other order, unknown fields, numbers as JSON may spell them, odd blanks. */
const foreign = `{
  "project": "shop", "service": "web",
      "image":"img:1", "cpu": 1e2, "memory": 64.0, "mystery": { "deep": [1.50, "\\u00e9", "}]\\"," ] },
  "env": { "10": "a", "9": "b", "A": "x\\ny" } }`;

describe('what a deploy makes of a node', () => {
  it('on a node without a document is a whole one, in the fixed layout', () => {
    const document = emptyDesired('web-1');
    const plan = planDeploy(document, blog, [aService()]);
    expect(plan.changes).toEqual([added('blog', 'web')]);
    expect(render(document, plan)).toBe(
      `${JSON.stringify(aDesired([aService()], { updatedAt }), null, 2)}\n`,
    );
  });

  it('leaves services of other projects as they are, to the byte', () => {
    const text = `{ "version": 3, "note": [ 1.0 ],\n"nodeId": "web-1", "updatedAt": "x", "services": [${foreign}, ${JSON.stringify(aService())}] }`;
    const document = parse(text);
    const plan = planDeploy(document, blog, [aService({ image: 'img:2' })]);
    expect(plan.changes).toEqual([
      {
        action: 'change',
        project: 'blog',
        service: 'web',
        fields: ['image registry.example/blog/web:1.0.0 -> img:2'],
      },
    ]);
    const own = JSON.stringify(aService({ image: 'img:2' }), null, 2).replaceAll('\n', '\n    ');
    expect(render(document, plan)).toBe(`{
  "version": 3,
  "note": [ 1.0 ],
  "nodeId": "web-1",
  "updatedAt": "${updatedAt}",
  "services": [
    ${foreign},
    ${own}
  ]
}
`);
  });

  it('removes what the file has no more, and an emptied node keeps an empty list', () => {
    const document = parse(JSON.stringify(aDesired([aService(), aService({ service: 'old' })])));
    const plan = planDeploy(document, blog, []);
    expect(plan).toEqual({ services: [], changes: [removed('blog', 'web'), removed('blog', 'old')] });
    expect(render(document, plan)).toBe(`${JSON.stringify(aDesired([], { updatedAt }), null, 2)}\n`);
  });

  it('changes nothing where nothing differs (R1, R4)', () => {
    const services = [
      aWebService({
        env: { A: '1', B: '2' },
        secretRefs: [ref('X'), ref('Y')],
        volumes: [volume('x'), volume('y')],
      }),
    ];
    const document = parse(JSON.stringify(aDesired(services)));
    const turned = aWebService({
      env: { B: '2', A: '1' },
      secretRefs: [ref('Y'), ref('X')],
      volumes: [volume('y'), volume('x')],
    });
    expect(planDeploy(document, blog, [turned])).toEqual({ services: document.services, changes: [] });
  });

  it('takes a definition without its defaults for the one with them (R4)', () => {
    const minimal = { project: 'blog', service: 'web', image: 'img:1', cpu: 512, memory: 256 };
    const document = parse(JSON.stringify({ ...aDesired(), services: [minimal] }));
    expect(planDeploy(document, blog, [aService({ image: 'img:1' })])).toEqual({
      services: document.services,
      changes: [],
    });
  });

  it('planned again over its own result changes nothing (R4)', () => {
    const document = parse(JSON.stringify(aDesired([aService()])));
    const wanted = [aService({ image: 'img:2' }), aService({ service: 'api' })];
    const after = parse(render(document, planDeploy(document, blog, wanted)));
    expect(planDeploy(after, blog, wanted)).toEqual({ services: after.services, changes: [] });
  });

  it('puts changed services in their place and new ones at the end, in the order of the file', () => {
    const present = ['c', 'a'].map((service) => aService({ service }));
    const document = parse(JSON.stringify(aDesired(present)));
    const wanted = ['d', 'a', 'b', 'c'].map((service) => aService({ service, image: 'img:2' }));
    const plan = planDeploy(document, blog, wanted);
    expect(plan.services.map(({ key }) => key)).toEqual(['blog/c', 'blog/a', 'blog/d', 'blog/b']);
  });

  it('tells which fields differ, and of env only the names', () => {
    const document = parse(
      JSON.stringify(aDesired([aService({ env: { KEEP: '1', OLD: 'secret', SET: 'a' } })])),
    );
    const wanted = aWebService({
      replicas: 3,
      env: { KEEP: '1', NEW: 'secret', SET: 'b' },
      volumes: [volume('x')],
      cron: '* * * * *',
    });
    const [change] = planDeploy(document, blog, [wanted]).changes;
    expect(change?.fields).toEqual([
      'replicas 1 -> 3',
      'env.NEW',
      'env.OLD',
      'env.SET',
      'ingress',
      'healthCheck',
      'volumes',
      'cron',
    ]);
  });

  it('sees the order of a list that matters (R2)', () => {
    const database = (databases: string[]) => ({ engine: 'postgres' as const, version: '15', databases });
    const document = parse(JSON.stringify(aDesired([aService({ database: database(['a', 'b']) })])));
    const plan = planDeploy(document, blog, [aService({ database: database(['b', 'a']) })]);
    expect(plan.changes.map(({ fields }) => fields)).toEqual([['database']]);
  });

  it('with --service touches that one alone', () => {
    const document = parse(JSON.stringify(aDesired([aService(), aService({ service: 'api' })])));
    const plan = planDeploy(document, { key: 'blog/web' }, [aService({ image: 'img:2' })]);
    expect(plan.services.slice(1)).toEqual(document.services.slice(1));
    expect(plan.changes.map(({ action, service }) => [action, service])).toEqual([['change', 'web']]);
  });

  it('keeps a restart that the file says nothing of, so that a deploy restarts nothing', () => {
    const restartAt = '2026-06-01T00:00:00.000Z';
    const document = parse(JSON.stringify(aDesired([aService({ restartAt })])));
    expect(planDeploy(document, blog, [aService()]).changes).toEqual([]);
    const [changed] = planDeploy(document, blog, [aService({ image: 'img:2' })]).services;
    expect(changed?.value).toEqual(aService({ image: 'img:2', restartAt }));
  });

  it('makes one of two definitions of a service, and removes both where none is wanted', () => {
    const document = parse(JSON.stringify(aDesired([aService(), aService({ image: 'img:0' })])));
    expect(planDeploy(document, blog, [aService()]).services).toEqual(document.services.slice(0, 1));
    expect(planDeploy(document, blog, []).changes).toEqual([removed('blog', 'web')]);
  });

  it('replaces a definition that cannot be read, and leaves alone what has no name', () => {
    const broken = { project: 'blog', service: 'web', cpu: 'many' };
    const document = parse(
      JSON.stringify({ ...aDesired(), services: [broken, 5, null, { project: 'blog' }] }),
    );
    const plan = planDeploy(document, blog, [aService()]);
    expect(plan.changes.map(({ fields }) => fields)).toEqual([['its definition, which could not be read']]);
    expect(plan.services.slice(1)).toEqual(document.services.slice(1));
  });

  it('drops fields of a service of ours that this version does not know, and says so', () => {
    const document = parse(JSON.stringify({ ...aDesired(), services: [{ ...aService(), mystery: 1 }] }));
    const plan = planDeploy(document, blog, [aService()]);
    expect(plan.changes.map(({ fields }) => fields)).toEqual([['mystery (unknown) removed']]);
  });
});

describe('a restart', () => {
  const at = '2026-06-05T00:00:00.000Z';

  it('sets restartAt and keeps the rest of the definition, unknown fields too', () => {
    const document = parse(JSON.stringify({ ...aDesired(), services: [{ ...aService(), mystery: 1 }] }));
    const plan = planRestart(document, 'blog/web', at);
    expect(plan.changes.map(({ fields }) => fields)).toEqual([[`restartAt ${at}`]]);
    expect(plan.services.map(({ value }) => value)).toEqual([{ ...aService(), mystery: 1, restartAt: at }]);
  });

  it('of a service that is not there changes nothing', () => {
    const document = parse(JSON.stringify(aDesired([aService()])));
    expect(planRestart(document, 'blog/api', at)).toEqual({ services: document.services, changes: [] });
  });
});

describe('a domain', () => {
  const placed = (service: DesiredService) => ({ key: serviceKey(service), nodes: ['web-1'], service });
  const on = (node: string, services: readonly unknown[]) => {
    const document = parse(JSON.stringify({ ...aDesired(), services }));
    return { node, plan: planDeploy(document, blog, []) };
  };
  const shopAt = (domain: string, edge = 'edge-1') =>
    aWebService({ project: 'shop', ingress: { domain, port: 1, edge } });

  it('that a service of another project has is a conflict that names both and their nodes (R48)', () => {
    const nodes = ['web-1', 'web-2', 'web-3'].map((node) => on(node, [shopAt('BLOG.example.com')]));
    expect(findDomainConflicts(nodes, [placed(aWebService())])).toEqual([
      'domain "blog.example.com" of "blog/web" on web-1 belongs to "shop/web" on web-1, web-2, web-3 already',
    ]);
  });

  it('that is a wildcard and another service has is a conflict, and the names below it are none (R48)', () => {
    const wildcard = aWebService({ ingress: { domain: '*.Example.com', port: 1, edge: 'edge-1' } });
    expect(findDomainConflicts([on('web-2', [shopAt('*.example.com')])], [placed(wildcard)])).toEqual([
      'domain "*.example.com" of "blog/web" on web-1 belongs to "shop/web" on web-2 already',
    ]);
    expect(findDomainConflicts([on('web-2', [shopAt('a.example.com')])], [placed(wildcard)])).toEqual([]);
  });

  it('that another service has on another edge is none', () => {
    const nodes = [on('web-2', [shopAt('blog.example.com', 'edge-2')])];
    expect(findDomainConflicts(nodes, [placed(aWebService())])).toEqual([]);
  });

  it('that the service itself has on another node is none', () => {
    const plan = planDeploy(parse(JSON.stringify(aDesired([aWebService()]))), blog, [aWebService()]);
    const nodes = ['web-1', 'web-2'].map((node) => ({ node, plan }));
    expect(findDomainConflicts(nodes, [placed(aWebService())])).toEqual([]);
  });

  it('is looked for in no element that is nobody', () => {
    const nodes = [on('web-1', [null, 5, { ingress: { domain: 'blog.example.com', edge: 'edge-1' } }])];
    expect(findDomainConflicts(nodes, [placed(aWebService())])).toEqual([]);
  });

  it('that only others dispute is not for this deploy to settle', () => {
    const others = ['a', 'b'].map((project) => aWebService({ project }));
    expect(findDomainConflicts([on('web-1', others)], [placed(aService())])).toEqual([]);
  });
});

function parse(text: string): RawDesired {
  return parseRawDesired(text, 'desired.json');
}

function render(document: RawDesired, { services }: NodePlan): string {
  return renderRawDesired(document, { updatedAt, services });
}

function added(project: string, service: string): unknown {
  return { action: 'add', project, service, fields: [] };
}

function removed(project: string, service: string): unknown {
  return { action: 'remove', project, service, fields: [] };
}

function ref(name: string): { name: string; ssm: string } {
  return { name, ssm: `/${name}` };
}

function volume(name: string): { name: string; path: string } {
  return { name, path: `/${name}` };
}
